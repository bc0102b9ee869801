#pragma once
// The error file of torch elastic, by which torchrun's summary of failures has the program's words
// instead of "To enable traceback see ..".

#include <string>

namespace decent {

/// Writes the file that TORCHELASTIC_ERROR_FILE names, in the format of
/// torch.distributed.elastic.multiprocessing.errors; without that variable nothing is done. Any
/// thread may, also several at once, as a loss and its consequences are found: the file is whole at
/// any time, since torchrun itself fails on one that is not. That it cannot be written is nobody's
/// concern: the message is told in other ways, too.
void write_elastic_error(const std::string& message);

}  // namespace decent
