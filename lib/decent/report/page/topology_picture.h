#pragma once
// A topology as a picture, phase by phase: for pages, and for docs/topologies.md.

#include <span>
#include <string>

#include "decent/topology/topology.h"

namespace decent {

struct TopologyPicture {
  std::string title;  // "ring, 4 workers"
  int workers = 1;
  int per_machine = 0;  // workers on each machine, drawn together; 0: all are on one circle
};

/// At most this many phases are drawn.
inline constexpr std::size_t kMostDrawnPhases = 12;
/// With more workers, nothing can be seen on a circle.
inline constexpr int kMostDrawnWorkers = 32;

/// The text of an SVG file. A line joins two workers that average with one another, an area more
/// than two; a worker that keeps its own weights is a dashed circle; a machine is a frame.
std::string topology_svg(std::span<const Phase> phases, const TopologyPicture& picture);

}  // namespace decent
