#pragma once
// What a recipe is used for.

namespace decent {

/// Training needs both sources of data, evaluation only data.eval; `model` reads and writes model
/// files and needs none.
enum class Purpose { training, evaluation, model };

}  // namespace decent
