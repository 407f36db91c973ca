#include "protocol/chunks/chunk_selection.h"

#include <algorithm>

namespace fedge::protocol {

std::vector<bool> chunks_of(const Manifest& manifest, const Coverage& parameters) {
  std::vector<bool> wanted(manifest.chunk_count(), false);
  const std::size_t values = manifest.chunk_size / sizeof(float);
  for (const Range& range : parameters.ranges())
    for (std::size_t chunk = range.begin / values; chunk <= (range.end - 1) / values && chunk < wanted.size();
         ++chunk)
      wanted[chunk] = true;
  return wanted;
}

}  // namespace fedge::protocol
