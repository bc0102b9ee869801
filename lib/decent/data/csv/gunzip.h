#pragma once
// gzip (RFC 1952). No torch.

#include <cstddef>
#include <span>
#include <string>

namespace decent {

/// Whether the bytes begin as gzip's do.
bool is_gzip(std::span<const std::byte> bytes);

/// What was compressed, of all members one after another. Throws UserError, which begins with
/// `what`, for damaged or cut bytes, and as soon as there is more than `most_ratio` times as much
/// as the bytes (and more than 1 MiB): memory is only taken for what was inflated.
std::string gunzip(std::span<const std::byte> bytes, std::size_t most_ratio,
                   const std::string& what);

}  // namespace decent
