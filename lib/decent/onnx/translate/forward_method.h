#pragma once
// The arguments and the result of forward(); internal to this folder.

#include <string>
#include <utility>
#include <vector>

#include "decent/onnx/format/ir.h"
#include "decent/onnx/translate/module_builder.h"

namespace decent::onnx {

class ForwardMethod {
 public:
  ForwardMethod(const Model& model, ModuleBuilder& module) : model_(model), module_(module) {}

  /// Defines the graph's inputs as arguments. Throws UserError if one is no tensor.
  void declare_inputs();
  /// The names of the graph's inputs and of their arguments.
  const std::vector<std::pair<std::string, std::string>>& arguments() const { return arguments_; }

  /// Writes the return of the graph's outputs, which ends the method, and returns the source of the
  /// whole module.
  std::string finish();

 private:
  Value value_of(const ValueInfo& input) const;
  const Value& output_value(const ValueInfo& output) const;
  std::string signature() const;
  std::string return_type() const;
  std::string return_line() const;
  std::string device() const;

  const Model& model_;
  ModuleBuilder& module_;
  std::vector<std::pair<std::string, std::string>> arguments_;
};

}  // namespace decent::onnx
