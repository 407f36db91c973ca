// Memory for large arrays: zeroed by the system on first use, in huge pages if available. With pages of 4 KiB
// a model of 100 MB costs 25,000 page faults at each allocation.
#pragma once

#include <cstddef>

namespace fedge {

// Smallest size that AlignedBuffer allocates here.
inline constexpr std::size_t kLargeAllocation = std::size_t{8} << 20;

// Small pages suit memory that is used only in places far apart, each of which would otherwise take a huge
// page.
enum class Pages { kHuge, kSmall };

// Returns zeroed memory aligned to a huge page; throws std::bad_alloc if there is none.
void* allocate_large(std::size_t bytes, Pages pages = Pages::kHuge);
// This machine's total memory in bytes.
std::size_t physical_memory();

// Frees the result of allocate_large(bytes).
void release_large(void* memory, std::size_t bytes) noexcept;

}  // namespace fedge
