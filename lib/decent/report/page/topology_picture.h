#pragma once
// A topology as a picture, phase by phase: for pages, and for docs/topologies.md.

#include <span>
#include <string>

#include "decent/topology/topology.h"

namespace decent {

struct TopologyPicture {
  std::string title;  // "ring, 4 workers"
  int workers = 1;
  int per_machine = 0;  // workers stand by their machines; 0: on one circle
};

/// More phases than these are not drawn.
inline constexpr std::size_t kMostDrawnPhases = 12;
/// With more workers a circle shows nothing any more.
inline constexpr int kMostDrawnWorkers = 32;

/// An SVG file. Two workers that average with one another are joined by a line, more than two by an
/// area; a worker that keeps its own weights is a dashed circle; a machine is a frame.
std::string topology_svg(std::span<const Phase> phases, const TopologyPicture& picture);

}  // namespace decent
