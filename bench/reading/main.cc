// Loads a device's data as a client does, and prints the seconds of the fastest of five turns.
//   bench_reading RUN_FILE PATH
#include <cstdio>
#include <string>

#include "bench/timing.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"

using namespace fedge;

namespace {

Result<void> measure(const char* run_file, const char* path) {
  FEDGE_TRY(text, read_file(run_file, std::size_t{1} << 20));
  FEDGE_TRY(document, config::parse_toml(text, run_file));
  config::Reader root(document.root, "", run_file);
  learn::DataSpec spec = learn::read_task(root).data;
  FEDGE_TRY_VOID(root.finish());
  spec.directory = path;
  std::size_t samples = 0;
  std::optional<Error> error;
  const double seconds = bench::best_of(5, [&] {
    const auto data = learn::load_part(spec, 0, Rng(1));
    if (data)
      samples = (*data)->size();
    else
      error = data.error();
  });
  if (error) return *error;
  std::printf("%zu samples in %.4f s\n", samples, seconds);
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: bench_reading RUN_FILE PATH\n");
    return 2;
  }
  if (const auto done = measure(arguments[1], arguments[2]); !done) {
    std::fprintf(stderr, "bench_reading: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
