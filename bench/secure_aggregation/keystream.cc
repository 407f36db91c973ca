// GB/s of the keystreams that masks use, alone and added to words as masks are, on one thread and on all; the
// best of several turns.
//   bench_keystream [megabytes] [turns]
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "bench/timing.h"
#include "core/crypto/sha256.h"
#include "core/platform/thread_pool.h"
#include "privacy/secure_aggregation/masking.h"

namespace {

using namespace fedge;
using bench::best_of;

const char* name_of(StreamCipher cipher) {
  return cipher == StreamCipher::kAes256Ctr ? "aes-256-ctr" : "chacha20";
}

Secret key_of(std::uint8_t first) { return Secret(Digest{first}); }

void measure(StreamCipher cipher, std::size_t bytes, int turns, Parallel& parallel) {
  constexpr std::size_t kBlock = 16 << 10;
  const std::size_t streams = 8;
  const auto gigabytes = static_cast<double>(bytes) * static_cast<double>(streams) / 1e9;
  const double alone = best_of(turns, [&] {
    parallel.for_each(streams, [&](std::size_t s) {
      Keystream stream(cipher);
      stream.start(key_of(static_cast<std::uint8_t>(s)));
      std::vector<std::uint8_t> block(kBlock);
      for (std::size_t done = 0; done < bytes; done += kBlock) stream.next(block);
    });
  });
  std::vector<Secret> keys;
  for (std::size_t s = 0; s < streams; ++s) keys.push_back(key_of(static_cast<std::uint8_t>(s)));
  std::vector<privacy::MaskTerm> terms;
  for (const Secret& key : keys) terms.push_back({&key, false, nullptr});
  std::vector<std::uint32_t> words(bytes / 4);
  const double added = best_of(turns, [&] {
    privacy::apply_masks(std::span(words), Coverage::all(words.size()), terms, cipher, parallel);
  });
  std::printf("%-12s %zu threads: keystream %6.2f GB/s, masks %6.2f GB/s\n", name_of(cipher),
              parallel.width(), gigabytes / alone, gigabytes / added);
}

}  // namespace

int main(int count, char** values) {
  const std::size_t bytes = (count > 1 ? std::strtoull(values[1], nullptr, 10) : 64) << 20;
  const int turns = count > 2 ? std::atoi(values[2]) : 10;
  Sequential one;
  ThreadPool all(std::thread::hardware_concurrency());
  for (const StreamCipher cipher : {StreamCipher::kAes256Ctr, StreamCipher::kChaCha20}) {
    measure(cipher, bytes, turns, one);
    measure(cipher, bytes, turns, all);
  }
  return 0;
}
