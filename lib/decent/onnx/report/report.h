#pragma once
// What an import understood of a file, as text for people.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "decent/onnx/classify/classify.h"
#include "decent/onnx/translate/translation.h"

namespace decent::onnx {

struct ImportFacts {
  const Model& file;                                   // as it was read
  const Model& model;                                  // functions inlined, patterns replaced
  const std::map<std::string, std::size_t>& patterns;  // recognised, with how often
  const Classification& classification;
  const Translation& translation;
};

enum class Detail {
  brief,  // about 20 lines: groups with some names
  full,   // a line for each tensor
};

/// Nodes that draw random numbers in evaluation, too, and what to do about it; empty where there is
/// none.
std::string random_in_evaluation(const Translation& translation);

/// Lines: where the file comes from, operators, patterns, what trains and what does not and why,
/// what the export has lost or merged, and what follows from it for training.
std::vector<std::string> import_report(const ImportFacts& facts, Detail detail);

/// Those of these lines that matter before a run: weights that stay frozen, batch norms that became
/// other operators, dropout that is not in the file.
std::vector<std::string> training_notes(const ImportFacts& facts);

/// Parameters of the exported model that its file does not hold, by dynamo's own list; empty where
/// the file has none. Batch norms folded into convolutions go so, and tensors merged with equals.
std::vector<std::string> missing_parameters(const Model& file);

}  // namespace decent::onnx
