// Robust rules on updates of random numbers: seconds for a round (prepare() and every read()), and the peak
// memory of the rule beyond the updates. The updates lie in memory or, as in a chunk store, in a file.
// bench/aggregation/robust_numpy.py measures NumPy on the same shape.
//   bench_robust [updates] [parameters] [turns]
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "core/aligned_buffer.h"
#include "core/config/document.h"
#include "core/platform/thread_pool.h"
#include "core/rng.h"

namespace {

using namespace fedge;
using namespace fedge::aggregation;

// The piece size in which the end of a round reads the result.
constexpr std::size_t kPiece = 65'536;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "bench_robust: %s\n", message.c_str());
  std::exit(1);
}

class InMemory final : public UpdateValues {
 public:
  explicit InMemory(AlignedBuffer<float> values) : values_(std::move(values)) {}
  std::span<const float> in_memory() const override { return values_.span(); }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    std::copy_n(values_.data() + first, out.size(), out.begin());
    return {};
  }

 private:
  AlignedBuffer<float> values_;
};

// One update of a file that holds all updates one after another.
class InFile final : public UpdateValues {
 public:
  InFile(int file, std::size_t start) : file_(file), start_(start) {}
  Result<void> read(std::size_t first, std::span<float> out) const override {
    auto* target = reinterpret_cast<char*>(out.data());
    std::size_t left = out.size_bytes();
    auto offset = static_cast<off_t>((start_ + first) * sizeof(float));
    while (left > 0) {
      const ssize_t got = ::pread(file_, target, left, offset);
      if (got <= 0) return Error{ErrorCode::kResource, "the file of updates cannot be read"};
      target += got;
      offset += got;
      left -= static_cast<std::size_t>(got);
    }
    return {};
  }

 private:
  int file_;
  std::size_t start_;
};

// Small normal values, like the updates of local training. They are drawn once and then rotated, which saves
// start-up time.
AlignedBuffer<float> make_update(std::size_t update, std::size_t parameters) {
  static const std::vector<float> pool = [] {
    Rng rng(1);
    std::vector<float> values((1 << 20) + 7);
    for (float& value : values) value = static_cast<float>(0.01 * rng.normal());
    return values;
  }();
  AlignedBuffer<float> values(parameters);
  for (std::size_t i = 0; i < parameters; ++i) values.data()[i] = pool[(i + 40'099 * update) % pool.size()];
  return values;
}

int temporary_file() {
  char name[] = "/tmp/bench_robust_XXXXXX";
  const int file = ::mkstemp(name);
  if (file < 0) fail("no temporary file in /tmp");
  ::unlink(name);
  return file;
}

std::vector<Update> make_updates(std::size_t count, std::size_t parameters, bool in_file) {
  const int file = in_file ? temporary_file() : -1;
  std::vector<Update> updates;
  for (std::uint32_t client = 0; client < count; ++client) {
    Update update{.client = ClientId(client), .weight = SampleCount(1), .norm = 1};
    update.coverage = Coverage::all(parameters);
    AlignedBuffer<float> values = make_update(client, parameters);
    if (in_file) {
      const std::span<const std::byte> bytes = std::as_bytes(values.span());
      for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t put = ::write(file, bytes.data() + done, bytes.size() - done);
        if (put <= 0) fail("no space for the updates in /tmp");
        done += static_cast<std::size_t>(put);
      }
      update.values = std::make_shared<InFile>(file, client * parameters);
    } else {
      update.values = std::make_shared<InMemory>(std::move(values));
    }
    updates.push_back(std::move(update));
  }
  return updates;
}

std::unique_ptr<Aggregator> make_rule(const std::string& name, const std::string& options,
                                      const AggregatorContext& context) {
  for (const AggregatorKind& kind : aggregator_kinds()) {
    if (kind.name != name) continue;
    const auto document = config::parse_toml(options, "bench");
    if (!document) fail(document.error().message);
    config::Reader section(document->root, "", "bench");
    const AggregatorPart part = kind.read(section);
    if (const auto finished = section.finish(); !finished) fail(finished.error().message);
    return part.make(context);
  }
  fail("no rule called " + name);
}

double seconds_of_round(Aggregator& rule, const std::vector<Update>& updates, Parallel& parallel) {
  const std::size_t parameters = updates[0].coverage.count();
  std::vector<double> out(kPiece);
  const auto start = std::chrono::steady_clock::now();
  auto done = rule.add(updates, parallel);
  if (done) done = rule.prepare(parallel);
  for (std::size_t first = 0; done && first < parameters; first += kPiece)
    done = rule.read(first, std::span(out).first(std::min(kPiece, parameters - first)), parallel);
  if (!done) fail(done.error().message);
  rule.clear();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the peak resident memory in MiB since the last reset; `set_back` resets the peak first.
double peak_mib(bool set_back) {
  if (set_back)
    if (std::FILE* const file = std::fopen("/proc/self/clear_refs", "w")) {
      std::fputs("5", file);
      std::fclose(file);
    }
  double kib = 0;
  if (std::FILE* const file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "VmHWM: %lf", &kib) == 1) break;
    std::fclose(file);
  }
  return kib / 1024;
}

int run(std::size_t count, std::size_t parameters, int turns) {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {parameters});
  const AggregatorContext context{.layout = std::move(layout), .max_updates = count};
  std::printf("%zu updates of %zu float32 parameters, best of %d turns\n", count, parameters, turns);
  std::printf("%-18s %-8s %10s %10s %12s\n", "", "updates", "1 thread", "2 threads", "memory");
  Sequential alone;
  ThreadPool pair(2);
  for (const bool in_file : {false, true}) {
    const std::vector<Update> updates = make_updates(count, parameters, in_file);
    const std::string options = in_file ? "memory_mb = 32" : "";
    for (const char* name : {"median", "trimmed_mean", "krum", "multi_krum", "bulyan", "geometric_median",
                             "centered_clip", "clipped_mean"}) {
      const auto rule = make_rule(name, options, context);
      double best[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
      const double before = peak_mib(true);
      for (int turn = 0; turn < turns; ++turn) {
        best[0] = std::min(best[0], seconds_of_round(*rule, updates, alone));
        best[1] = std::min(best[1], seconds_of_round(*rule, updates, pair));
      }
      std::printf("%-18s %-8s %8.3f s %8.3f s %8.1f MiB\n", name, in_file ? "file" : "memory", best[0],
                  best[1], peak_mib(false) - before);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long updates = argc > 1 ? std::atol(argv[1]) : 100;
  const long parameters = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  const int turns = argc > 3 ? std::atoi(argv[3]) : 5;
  if (updates < 3 || updates > 65'536 || parameters < 1 || turns < 1 || turns > 10'000) {
    std::fprintf(stderr, "usage: bench_robust [updates, 3 to 65536] [parameters] [turns]\n");
    return 2;
  }
  return run(static_cast<std::size_t>(updates), static_cast<std::size_t>(parameters), turns);
}
