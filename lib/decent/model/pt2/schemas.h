#pragma once
// PyTorch's declarations of its operators, from LibTorch's registry.

#include <map>
#include <memory>
#include <string>

#include "decent/pt2/analyse/schemas.h"

namespace decent {

class RegisteredSchemas final : public pt2::OperatorSchemas {
 public:
  const pt2::OperatorSchema* find(const pt2::Target& target) const override;

 private:
  // Each operator that was looked up; null if LibTorch does not have it.
  mutable std::map<std::string, std::unique_ptr<const pt2::OperatorSchema>> known_;
};

}  // namespace decent
