#include "decent/report/dry_run_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "decent/core/text.h"
#include "decent/topology/analysis.h"

namespace decent {
namespace {

constexpr std::size_t kLabelWidth = 11;
constexpr std::size_t kMaxPhases = 8;
constexpr std::size_t kPhaseWidth = 64;

// Indents further lines of the text to the column of its first line.
std::string row(const std::string& label, std::string text) {
  const std::string margin(kLabelWidth, ' ');
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, margin);
  }
  return fmt::format("{:<{}}{}", label, kLabelWidth, text);
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

void add_model(const DryRunFacts& f, std::vector<std::string>& lines) {
  lines.push_back(row("model", f.run.model));
  const std::string frozen =
      f.frozen_parameters > 0 ? fmt::format(", {} frozen", f.frozen_parameters) : "";
  lines.push_back(row(
      "",
      fmt::format("{} to train ({}){}; {} ({})", counted(f.run.parameters, "parameter"),
                  bytes_text(static_cast<double>(f.trained_bytes)), frozen,
                  counted(f.buffers, "buffer"), bytes_text(static_cast<double>(f.buffer_bytes)))));
  std::vector<std::string> largest;
  for (const auto& [name, elements] : f.largest) {
    largest.push_back(fmt::format("{} {}", name, elements));
  }
  lines.push_back(row("", "largest: " + join(largest)));
  for (std::size_t i = 0; i < f.import.size(); ++i)
    lines.push_back(row(i == 0 ? "import" : "", f.import[i]));
}

void add_buckets(const DryRunFacts& f, std::vector<std::string>& lines) {
  const auto [least, most] = std::minmax_element(f.bucket_bytes.begin(), f.bucket_bytes.end());
  std::string sizes = bytes_text(static_cast<double>(*most));
  if (*least != *most) sizes = bytes_text(static_cast<double>(*least)) + " to " + sizes;
  lines.push_back(row("buckets", fmt::format("{} of {}, updated {}", f.bucket_bytes.size(), sizes,
                                             f.in_backward ? "in backward" : "after backward")));
}

void add_memory(const DryRunFacts& f, std::vector<std::string>& lines) {
  const auto trained = static_cast<double>(sum(f.bucket_bytes));
  const auto frozen = static_cast<double>(f.frozen_bytes);
  const auto sums = static_cast<double>(f.adapted_bytes);
  const auto states = static_cast<double>(f.optimizer_bytes);
  const double all = frozen + 2 * trained + sums + f.exchange_bytes.value_or(0) + states;
  lines.push_back(row("memory", fmt::format("{} a worker besides activations, data and LibTorch:",
                                            bytes_text(all))));
  // Of weights with adapters a step holds sums, and an evaluation the weights without them.
  lines.push_back(row(
      "", fmt::format(
              "weights {}{}, gradients {}, exchange {}, optimizer {}; an "
              "evaluation needs {} while gradients{} are gone",
              bytes_text(frozen + trained), sums > 0 ? ", with adapters " + bytes_text(sums) : "",
              bytes_text(trained), f.exchange_bytes ? bytes_text(*f.exchange_bytes) : "not known",
              bytes_text(states), bytes_text(trained + sums), sums > 0 ? " and sums" : "")));
  lines.push_back(row("", fmt::format("peak of this process with one forward and backward: {}",
                                      bytes_text(f.peak_bytes))));
  if (!f.gpu) return;
  lines.push_back(row(
      "",
      fmt::format("peak of the GPU likewise: {} in tensors, {} held by LibTorch, "
                  "of {}; without exchange and optimizer",
                  bytes_text(f.gpu->used), bytes_text(f.gpu->reserved), bytes_text(f.gpu->total))));
}

void add_topology(const DryRunFacts& f, std::vector<std::string>& lines) {
  lines.push_back(
      row("topology", fmt::format("{} of {}, {}", f.topology, counted(f.run.workers, "worker"),
                                  counted(std::ssize(f.phases), "phase"))));
  for (std::size_t i = 0; i < std::min(kMaxPhases, f.phases.size()); ++i) {
    lines.push_back(row("", fmt::format("phase {}: {}", i, phase_text(f.phases[i], kPhaseWidth))));
  }
  if (f.phases.size() > kMaxPhases) {
    lines.push_back(row("", fmt::format("and {} more", f.phases.size() - kMaxPhases)));
  }
  lines.push_back(
      row("", fmt::format("spectral gap {:.4f} over a period (gamma {:g}: 1 is agreement after it)",
                          spectral_gap(f.phases, f.run.workers, f.gamma), f.gamma)));
  const auto steps = steps_to_reach_all(f.phases, f.run.workers);
  const std::int64_t slices = f.run.sent.slices;  // a phase lasts this many steps
  lines.push_back(
      row("", steps ? "everyone has heard of everyone after " + counted(slices * *steps, "step")
                    : "some workers never hear of others"));
}

void add_exchange(const DryRunFacts& f, std::vector<std::string>& lines) {
  if (f.averages_weights) {
    add_topology(f, lines);
  } else {
    lines.push_back(row("method", counted(f.run.workers, "worker") + ", " + f.run.parallel));
  }
  lines.push_back(
      row("exchange", fmt::format("{}, sent: {}", method_text(f.run.sent), sent_text(f.run.sent))));
}

void add_data(const DryRunFacts& f, std::vector<std::string>& lines) {
  lines.push_back(row("data", data_text(f.run)));
  lines.push_back(
      row("steps", fmt::format("{} of {}, {} an epoch ({} left out of each)", f.run.steps,
                               f.update_samples, f.run.updates_per_epoch, f.left_out)));
  std::vector<std::string> rates;
  for (const auto& [step, rate] : f.learning_rates) {
    rates.push_back(fmt::format("{:.3g} at step {}", rate, step));
  }
  lines.push_back(row("optimizer", f.run.optimizer + ", lr " + join(rates)));
  if (f.run.lr.scaled())
    lines.push_back(row("", "lr " + lr_text(f.run.lr, f.run.workers) + " at its peak"));
}

std::string last_line(const DryRunFacts& f) {
  const std::string nothing = "; nothing was written";
  const std::string warned =
      f.warnings.empty() ? "" : ", with " + counted(std::ssize(f.warnings), "warning");
  if (!f.output_note.empty())
    return "dry run: all but the output folder is well" + warned + nothing;
  if (!f.warnings.empty()) return "dry run: this can run" + warned + nothing;
  return "dry run: all is well" + nothing;
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string phase_text(const Phase& phase, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < phase.size(); ++i) {
    std::vector<std::string> ranks;
    for (int rank : phase[i].ranks) ranks.push_back(std::to_string(rank));
    text += (text.empty() ? "{" : " {") + join(ranks, " ") + "}";
    if (text.size() > most && i + 1 < phase.size()) {
      return text.substr(0, most) + fmt::format(" .. ({} edges)", phase.size());
    }
  }
  return text;
}

std::vector<std::string> dry_run_lines(const DryRunFacts& facts) {
  std::vector<std::string> lines;
  add_model(facts, lines);
  lines.push_back(row("device", facts.run.device));
  add_buckets(facts, lines);
  add_memory(facts, lines);
  add_exchange(facts, lines);
  add_data(facts, lines);
  lines.push_back(row("output", facts.run.output));
  if (!facts.output_note.empty()) lines.push_back(row("", "note: " + facts.output_note));
  for (const std::string& note : facts.notes) lines.push_back("note: " + note);
  for (const std::string& warning : facts.warnings) lines.push_back("warning: " + warning);
  lines.push_back(last_line(facts));
  return lines;
}

}  // namespace decent
