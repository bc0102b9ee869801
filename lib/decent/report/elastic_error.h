#pragma once
// The error file of torch elastic. With it, torchrun's summary of failures shows the program's
// message instead of "To enable traceback see ..".

#include <string>

namespace decent {

/// Writes the file that TORCHELASTIC_ERROR_FILE names, in the format of
/// torch.distributed.elastic.multiprocessing.errors; does nothing if the variable is not set. Any
/// thread, also several at once when a loss and its consequences are found: the file is whole at
/// any time, since torchrun itself fails on an incomplete one. Errors of writing are ignored: the
/// message is also shown in other ways.
void write_elastic_error(const std::string& message);

}  // namespace decent
