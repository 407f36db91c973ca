// Memory for large arrays: zeroed by the system on first use, and in huge pages where it offers them,
// since a model of 100 MB in pages of 4 KiB costs 25,000 page faults each time it is allocated.
#pragma once

#include <cstddef>

namespace fedge {

// From this size on, an AlignedBuffer asks here.
inline constexpr std::size_t kLargeAllocation = std::size_t{8} << 20;

// Zeroed, aligned to a huge page; std::bad_alloc if the system has no more.
void* allocate_large(std::size_t bytes);
// What this machine has, in use or not.
std::size_t physical_memory();

// What allocate_large(bytes) gave.
void release_large(void* memory, std::size_t bytes) noexcept;

}  // namespace fedge
