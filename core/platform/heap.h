// The heap's pages: the C library gives back those at the heap's end alone, and one small thing that lives on
// there holds everything before it. Any thread.
#pragma once

namespace fedge {

// Gives freed pages back to the system. Milliseconds for a heap of 100 MB; nothing where the C library
// cannot.
void return_freed_memory() noexcept;

}  // namespace fedge
