#pragma once
// Reads the tables of weights and of constants from their JSON.

#include <span>
#include <string>
#include <string_view>

#include "decent/pt2/archive/records.h"
#include "decent/pt2/json/document.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

/// The tensors of a table whose records are in `folder`. `archive` is the whole file. Throws
/// UserError naming the place if something does not follow the schema, and for tensors that are
/// pickled or do not fit into their records.
ByName<Payload> parse_payloads(Json json, std::string_view folder, const Records& records,
                               std::span<const std::byte> archive);

}  // namespace decent::pt2
