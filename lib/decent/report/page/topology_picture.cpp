#include "decent/report/page/topology_picture.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

#include "decent/report/dry_run_text.h"

namespace decent {
namespace {

// Colours that can be read on white and on black.
constexpr const char* kWorkerColour = "#2f81c7";
constexpr const char* kEdgeColour = "#d9782d";
constexpr const char* kTextColour = "#808a96";
constexpr int kWidth = 220;
constexpr int kHeight = 190;
constexpr int kCaption = 30;
constexpr int kHalfBox = 37;    // half of a side of a machine's frame
constexpr double kBoxGap = 22;  // between the frames of two machines
constexpr int kColumns = 5;

struct Point {
  double x = 0;
  double y = 0;
};

// A worker's point on a circle. If the count is even, 0 and 1 are at the top; of two, 0 is left.
Point around(int number, int count, double radius, Point centre) {
  const double shift = count == 2 ? 0.25 : count % 2 == 0 ? 0.5 / count : 0;
  const double angle =
      2 * std::numbers::pi * (static_cast<double>(number) / count - shift) - std::numbers::pi / 2;
  return {centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)};
}

std::string line(Point a, Point b, int width) {
  return fmt::format(
      R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}"/>)",
      a.x, a.y, b.x, b.y, kEdgeColour, width);
}

std::string square(Point centre, const std::string& look) {
  return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}" rx="12" {}/>)",
                     centre.x - kHalfBox, centre.y - kHalfBox, 2 * kHalfBox, 2 * kHalfBox, look);
}

// Machines with other numbers of workers have no frames: all workers are on one circle.
bool is_framed(const TopologyPicture& picture) {
  return picture.per_machine == 2 || picture.per_machine == 4;
}

// One phase, with the positions of its workers.
class Panel {
 public:
  Panel(const TopologyPicture& picture, Point centre) : picture_(picture), centre_(centre) {
    for (int rank = 0; rank < picture.workers; ++rank) at_.push_back(place(rank));
  }

  std::string averaging(const Phase& phase) const {
    std::string areas, frames, pairs;
    for (const Edge& edge : phase) {
      if (framed()) {
        add_machines(edge, areas, frames);
      } else if (edge.ranks.size() == 2) {
        pairs += line(at(edge.ranks[0]), at(edge.ranks[1]), 5);
      } else if (edge.ranks.size() > 2) {
        areas += area(edge);
      }
    }
    // A group gives overlapping areas one opacity together.
    if (!areas.empty()) areas = R"(<g opacity="0.45">)" + areas + "</g>";
    return areas + frames + pairs;
  }

  std::string worker(int rank, bool alone) const {
    const Point p = at(rank);
    const std::string look =
        alone ? fmt::format(R"(fill="none" stroke="{}" stroke-width="2" stroke-dasharray="4 3")",
                            kWorkerColour)
              : fmt::format(R"(fill="{}")", kWorkerColour);
    const int radius = dot();
    return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" {}/>)", p.x, p.y, radius, look) +
           fmt::format(R"(<text x="{:.1f}" y="{:.1f}" fill="{}" font-weight="600"{}>{}</text>)",
                       p.x, p.y + radius / 3.0, alone ? kWorkerColour : "#ffffff",
                       radius < 12 ? R"( font-size="10")" : "", rank);
  }

 private:
  bool framed() const { return is_framed(picture_); }
  int dot() const { return picture_.workers > 16 ? 7 : picture_.workers > 10 ? 11 : 15; }
  Point at(int rank) const { return at_.at(static_cast<std::size_t>(rank)); }

  Point box(int machine) const {
    const int machines = picture_.workers / picture_.per_machine;
    const double radius = (kHalfBox + kBoxGap / 2) * (machines == 2 ? 1 : std::numbers::sqrt2);
    return around(machine, machines, radius, centre_);
  }

  Point place(int rank) const {
    if (!framed()) return around(rank, picture_.workers, picture_.workers > 10 ? 76 : 66, centre_);
    static constexpr int kSpotsOfTwo[2][2] = {{-18, 0}, {18, 0}};
    static constexpr int kSpotsOfFour[4][2] = {{-18, -18}, {18, -18}, {18, 18}, {-18, 18}};
    const Point middle = box(rank / picture_.per_machine);
    const int spot = rank % picture_.per_machine;
    const int* shift = picture_.per_machine == 2 ? kSpotsOfTwo[spot] : kSpotsOfFour[spot];
    return {middle.x + shift[0], middle.y + shift[1]};
  }

  void add_machines(const Edge& edge, std::string& areas, std::string& frames) const {
    std::set<int> machines;
    for (int rank : edge.ranks) machines.insert(rank / picture_.per_machine);
    const Point first = box(*machines.begin());
    for (int machine : machines) {
      if (machine != *machines.begin()) areas += line(first, box(machine), 30);
      areas += square(box(machine), fmt::format(R"(fill="{}")", kEdgeColour));
      frames += square(box(machine),
                       fmt::format(R"(fill="none" stroke="{}" stroke-width="2")", kTextColour));
    }
  }

  std::string area(const Edge& edge) const {
    std::string path;
    for (int rank : edge.ranks)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", at(rank).x, at(rank).y);
    return fmt::format(
        R"(<path d="{} Z" fill="{}" stroke="{}" stroke-width="{}" stroke-linejoin="round"/>)", path,
        kEdgeColour, kEdgeColour, 3 * dot());
  }

  const TopologyPicture& picture_;
  Point centre_;
  std::vector<Point> at_;
};

// Two machines are side by side; every other picture is as high as it is wide.
int height_of(const TopologyPicture& picture) {
  const bool row = is_framed(picture) && picture.workers == 2 * picture.per_machine;
  return row ? 2 * kHalfBox + 20 : kHeight;
}

// Each phase is a picture of its own within the whole, so that a page can take them apart.
std::string frame(const Phase& phase, std::size_t number, int height) {
  return fmt::format(
             R"(<svg x="{}" y="{}" width="{}" height="{}" viewBox="0 0 {} {}" overflow="visible" )"
             R"(role="img"><title>)",
             number % kColumns * kWidth, number / kColumns * static_cast<std::size_t>(height),
             kWidth, height, kWidth, height) +
         fmt::format("phase {}: {}</title>", number, phase_text(phase, 300));
}

std::string panel(const Phase& phase, std::size_t number, const TopologyPicture& picture) {
  const int height = height_of(picture);
  const Point centre{kWidth / 2.0, height / 2.0};
  const Panel drawn(picture, centre);
  std::string text = frame(phase, number, height + kCaption) + drawn.averaging(phase);
  for (const Edge& edge : phase) {
    for (int rank : edge.ranks) text += drawn.worker(rank, edge.ranks.size() == 1);
  }
  return text +
         fmt::format(R"(<text class="phase" x="{:.1f}" y="{}" fill="{}">phase {}</text>)", centre.x,
                     height + 16, kTextColour, number) +
         "</svg>";
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return safe;
}

}  // namespace

std::string topology_svg(std::span<const Phase> phases, const TopologyPicture& picture) {
  const std::size_t shown = std::min(phases.size(), kMostDrawnPhases);
  const auto columns = std::min<std::size_t>(kColumns, shown);
  const auto rows = (shown + kColumns - 1) / kColumns;
  const auto width = columns * kWidth;
  const auto height = rows * static_cast<std::size_t>(height_of(picture) + kCaption);
  std::string body, said;
  for (std::size_t i = 0; i < shown; ++i) {
    body += panel(phases[i], i, picture) + "\n";
    said += fmt::format("{}phase {}: {}", i == 0 ? "" : "; ", i, phase_text(phases[i], 300));
  }
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" )"
             R"(role="img" font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif" )"
             R"(font-size="15" text-anchor="middle">)",
             width, height, width, height) +
         "\n<title>" + escaped(picture.title) + "</title>\n<desc>" + said + "</desc>\n" + body +
         "</svg>\n";
}

}  // namespace decent
