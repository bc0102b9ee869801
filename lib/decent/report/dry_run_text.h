#pragma once
// The lines that --dry-run prints, made from figures.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decent/core/gpu_memory.h"
#include "decent/report/progress.h"
#include "decent/topology/topology.h"

namespace decent {

struct DryRunFacts {
  RunFacts run;
  std::int64_t frozen_parameters = 0;
  std::int64_t frozen_bytes = 0;
  std::int64_t adapted_bytes = 0;  // of weights with adapters
  std::int64_t trained_bytes = 0;
  std::vector<std::pair<std::string, std::int64_t>> largest;  // names and elements
  std::int64_t buffers = 0;                                   // tensors
  std::int64_t buffer_bytes = 0;
  std::vector<std::int64_t> bucket_bytes;  // with padding
  std::int64_t optimizer_bytes = 0;        // of its states
  std::optional<double> exchange_bytes;    // memory of the exchange; nothing: not known
  std::vector<std::string> import;         // how the model file was understood; may be empty
  std::vector<std::string> notes;          // as a run would print them at its start
  std::vector<std::string> warnings;       // as a run would print them
  double peak_bytes = 0;                   // of this process so far, the trial step included
  std::optional<GpuMemory> gpu;            // the same on a GPU
  bool in_backward = true;

  bool averages_weights = true;  // by the topology
  std::string topology;
  double gamma = 1;
  std::vector<Phase> phases;

  std::string update_samples;  // what an update takes: "12 samples"
  std::string left_out;        // what an epoch leaves out: "3 samples"
  std::vector<std::pair<std::int64_t, double>> learning_rates;  // step and rate

  std::string output_note;  // why a run cannot use that folder; else empty
};

std::vector<std::string> dry_run_lines(const DryRunFacts& facts);

/// "12.3 MiB", "512 B".
std::string bytes_text(double bytes);

/// "{0 1} {2 3}", shortened to about `most` characters.
std::string phase_text(const Phase& phase, std::size_t most);

}  // namespace decent
