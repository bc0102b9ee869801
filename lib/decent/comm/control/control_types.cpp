#include "decent/comm/control/control_types.h"

#include <csignal>
#include <cstring>

namespace decent {

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name);
}

std::string_view text_of(Operation operation) {
  switch (operation) {
    case Operation::starting:
      return "starting";
    case Operation::running:
      return "running";
    case Operation::waiting_for_data:
      return "waiting for data";
    case Operation::forward:
      return "in forward";
    case Operation::backward:
      return "in backward";
    case Operation::averaging:
      return "averaging";
    case Operation::evaluating:
      return "evaluating";
    case Operation::predicting:
      return "predicting";
    case Operation::sharing_scores:
      return "adding up scores";
    case Operation::logging:
      return "writing metrics";
    case Operation::exporting:
      return "exporting";
    case Operation::saving:
      return "saving a checkpoint";
    case Operation::loading:
      return "loading a checkpoint";
  }
  return "at work";
}

std::string Position::text() const {
  const std::string doing(text_of(operation));
  return operation == Operation::running ? doing : "in step " + std::to_string(step) + ", " + doing;
}

std::string Stop::cause() const {
  const std::string worker = "worker " + std::to_string(rank);
  return signal == 0 ? "the end of " + launcher + " (seen by " + worker + ")"
                     : signal_name(signal) + " to " + worker;
}

}  // namespace decent
