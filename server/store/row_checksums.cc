#include "server/store/detail/row_checksums.h"

#include <array>

#include "core/crypto/sha256.h"

namespace fedge::server {
namespace {

constexpr std::size_t kChecksumSize = 16;

// Hashes each field after its length, so that different rows have different hash inputs.
class Checksum {
 public:
  Checksum& add(std::string_view field) {
    add(static_cast<std::int64_t>(field.size()));
    hash_.add(std::as_bytes(std::span(field)));
    return *this;
  }
  Checksum& add(std::int64_t number) {
    std::array<std::byte, 8> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(number) >> (8 * i));
    hash_.add(bytes);
    return *this;
  }
  std::string finish() {
    const Digest digest = hash_.finish();
    return {reinterpret_cast<const char*>(digest.data()), kChecksumSize};
  }

 private:
  Sha256 hash_;
};

}  // namespace

// A row without a project and a submitter of its own has the checksum that older versions gave it.
std::string checksum_of(const RunRecord& run) {
  Checksum checksum;
  checksum.add(run.number.value())
      .add(static_cast<std::int64_t>(run.id.value()))
      .add(run.name)
      .add(run.document)
      .add(static_cast<std::int64_t>(run.status))
      .add(run.reason)
      .add(run.submitted)
      .add(run.started)
      .add(run.ended);
  if (run.project != kDefaultProject || !run.submitter.empty()) checksum.add(run.project).add(run.submitter);
  return checksum.finish();
}

std::string checksum_of(RunNumber run, std::int64_t rounds, std::string_view bytes) {
  return Checksum().add(run.value()).add(rounds).add(bytes).finish();
}

std::string chain(const std::string& before, RunNumber run, const JournalEntry& entry) {
  return Checksum()
      .add(before)
      .add(run.value())
      .add(static_cast<std::int64_t>(entry.sequence))
      .add(entry.time.time_since_epoch().count())
      .add(entry.input)
      .finish();
}

}  // namespace fedge::server
