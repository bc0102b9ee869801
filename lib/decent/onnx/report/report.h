#pragma once
// How an import understood a file, as text for people.

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
  const std::map<std::string, std::size_t>& patterns;  // recognised, with their numbers
  const Classification& classification;
  const Translation& translation;
};

enum class Detail {
  brief,  // about 20 lines: groups with some names
  full,   // a line for each tensor
};

/// Nodes that draw random numbers in evaluation, too, and advice; empty if there are none.
std::string random_in_evaluation(const Translation& translation);

/// Lines on the origin of the file, operators, patterns, what trains and what does not and why,
/// what the export has lost or merged, and the consequences for training.
std::vector<std::string> import_report(const ImportFacts& facts, Detail detail);

/// The lines that matter before a run: weights that stay frozen, batch norms that became other
/// operators, dropout that is not in the file.
std::vector<std::string> training_notes(const ImportFacts& facts);

/// Parameters of the exported model that its file lacks, according to dynamo's list; empty if the
/// file has no such list. Batch norms folded into convolutions are lost in this way, and tensors
/// merged with equal ones.
std::vector<std::string> missing_parameters(const Model& file);

}  // namespace decent::onnx
