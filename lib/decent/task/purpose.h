#pragma once
// What a recipe is used for.

namespace decent {

/// Training needs data.train and data.eval, evaluation only data.eval, prediction data.predict;
/// `model` reads and writes model files and needs none.
enum class Purpose { training, evaluation, prediction, evaluation_and_prediction, model };

constexpr bool reads_eval(Purpose purpose) {
  return purpose == Purpose::training || purpose == Purpose::evaluation ||
         purpose == Purpose::evaluation_and_prediction;
}

constexpr bool predicts(Purpose purpose) {
  return purpose == Purpose::prediction || purpose == Purpose::evaluation_and_prediction;
}

}  // namespace decent
