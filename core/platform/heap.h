// Returns freed heap memory to the system. The C library alone returns only the end of the heap, and a small
// live allocation there keeps everything before it. Any thread.
#pragma once

namespace fedge {

// Returns freed pages. Takes milliseconds for a heap of 100 MB; does nothing if the C library cannot.
void return_freed_memory() noexcept;

}  // namespace fedge
