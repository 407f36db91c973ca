// A coordinator whose data directory is on a file system of 4 MiB that another process fills.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "protocol/chunks/chunk_store.h"
#include "tests/faults/whole_run.h"

using namespace fedge;
using test::contains;
using test::Outcome;
using test::Setting;
using test::WholeRun;

namespace {

// Enough rounds for a fault in the middle.
const Setting kPlain{"fedavg", "", 2, 40};
const Setting kCompressed{"fedadam", "[strategy]\nkind = \"fedadam\"\n[compression]\nkind = \"int8\"\n", 2,
                          40};
const Setting kServerless{"serverless", "[dissemination]\nkind = \"serverless\"\n", 2, 40};

// A small file system that only this program and its children see.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path at) : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    REQUIRE(::mount("none", at_.c_str(), "tmpfs", 0, "size=4m,mode=0700") == 0);
  }
  ~SmallDisk() { ::umount2(at_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Fills the disk except for `left` bytes.
  void fill(off_t left = 0) const {
    const int fd = ::open(ballast().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    off_t size = 0;
    const off_t page = 4096;
    for (off_t step = 1 << 20; step >= page; step /= 2)
      while (::fallocate(fd, 0, size, step) == 0) size += step;
    if (left > 0) REQUIRE(::ftruncate(fd, std::max<off_t>(size - left, 0)) == 0);
    ::close(fd);
    REQUIRE(size > 0);
  }
  void free() const { std::filesystem::remove(ballast()); }

 private:
  std::filesystem::path ballast() const { return at_ / "ballast"; }
  std::filesystem::path at_;
};

// Stores an object of 128 KiB.
Result<std::shared_ptr<protocol::StoredObject>> some_object(protocol::ChunkStore& store, std::uint8_t value) {
  protocol::Manifest shape;
  shape.coverage = Coverage::all(32 << 10);
  shape.payload_size = 128 << 10;
  shape.chunk_size = 64 << 10;
  return store.build(shape, [&](std::size_t, std::span<std::byte> out) -> Result<void> {
    std::ranges::fill(out, static_cast<std::byte>(value));
    return {};
  });
}

// Fills the disk in the middle of the run.
void begin_and_fill(WholeRun& whole, const SmallDisk& disk) {
  whole.begin_well();
  REQUIRE(whole.server->wait_for("round.started round=2"));
  disk.fill();
  REQUIRE_MESSAGE(whole.server->wait_for("disk.full"), whole.server_log());
}

bool may_mount() {
  static const bool may =
      ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (!may) test::skip("this user may not mount a file system");
  return may;
}

}  // namespace

TEST_CASE("full disk: a run waits for room, says so, and loses nothing, N1 N6, row 6") {
  if (!may_mount()) return;
  for (const Setting& setting : {kPlain, kCompressed, kServerless}) {
    CAPTURE(std::string(setting.name));
    const std::string expected = test::undisturbed(setting);
    WholeRun whole(setting);
    const SmallDisk disk(whole.data());
    begin_and_fill(whole, disk);
    CHECK_FALSE(whole.server->ends_within(1500));  // it retries meanwhile
    const std::size_t begun = whole.rounds_begun();
    disk.free();
    const auto freed = std::chrono::steady_clock::now();
    REQUIRE(whole.server->wait_for("round.started round=" + std::to_string(begun + 1)));
    MESSAGE(std::string(setting.name)
            << ": the next round begins "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - freed).count()
            << " s after there is room");
    whole.check(expected);
    CHECK_FALSE(contains(whole.server_log(), "update.store_failed"));
  }
}

TEST_CASE("full disk: killed while it waits for room a coordinator goes on when there is some, N1, row 6") {
  if (!may_mount()) return;
  const std::string expected = test::undisturbed(kPlain);
  WholeRun whole(kPlain);
  const SmallDisk disk(whole.data());
  begin_and_fill(whole, disk);
  whole.server->kill();
  disk.free();
  REQUIRE(whole.go_on());
  whole.check(expected);
}

TEST_CASE(
    "full disk: started again while there is little room or none, a coordinator loses nothing, N1, row 6") {
  if (!may_mount()) return;
  const std::string expected = test::undisturbed(kPlain);
  WholeRun whole(kPlain);
  const SmallDisk disk(whole.data());
  begin_and_fill(whole, disk);
  whole.server->kill();
  for (const off_t left : {0, 16 << 10, 48 << 10, 96 << 10, 256 << 10}) {
    disk.free();
    disk.fill(left);
    whole.start();
    (void)whole.server->ends_within(500);  // it may end with a reason; its supervisor would restart it
    whole.server->kill();
  }
  disk.free();
  REQUIRE(whole.go_on());
  whole.check(expected);
}

TEST_CASE("full disk: told to end while it waits for room a coordinator does, row 64") {
  if (!may_mount()) return;
  const std::string expected = test::undisturbed(kPlain);
  WholeRun whole(kPlain);
  const SmallDisk disk(whole.data());
  begin_and_fill(whole, disk);
  whole.server->signal(SIGTERM);
  CHECK(whole.server->ends_within(10'000));
  whole.kill_clients();
  disk.free();
  REQUIRE(whole.go_on());
  whole.start_clients();
  whole.check(expected);
}

TEST_CASE("full disk: a store that is closed keeps what it holds, whatever is free, N1, row 64") {
  if (!may_mount()) return;
  const test::TemporaryDirectory place;
  const SmallDisk disk(place.path() / "disk");
  const protocol::FileStoreOptions kept{.max_bytes = 64 << 20, .durable = true, .all_wanted = true};
  std::vector<protocol::Manifest> held;
  {
    const auto store = *protocol::open_file_chunk_store(place.path() / "disk" / "updates", kept);
    store->settle();
    for (std::uint8_t i = 0; i < 24; ++i) {  // 3 of the 4 MiB
      const auto object = some_object(*store, i);
      REQUIRE(object);
      held.push_back((*object)->manifest());
    }
  }
  const auto later = *protocol::open_file_chunk_store(place.path() / "disk" / "updates", kept);
  for (const protocol::Manifest& manifest : held) CHECK((*later->create(manifest))->complete());
}

TEST_CASE(
    "full disk: files that are kept to be written over give way to whoever else fills the disk, N6, row 6") {
  if (!may_mount()) return;
  const test::TemporaryDirectory place;
  const SmallDisk disk(place.path() / "disk");
  const auto store = *protocol::open_file_chunk_store(place.path() / "disk" / "updates",
                                                      {.max_bytes = 64 << 20, .durable = true});
  store->settle();
  std::vector<protocol::ObjectId> gone;
  for (std::uint8_t i = 0; i < 8; ++i) gone.push_back((*some_object(*store, i))->manifest().id());
  for (const auto& id : gone) store->remove(id);
  disk.fill();
  struct statvfs full {};
  REQUIRE(::statvfs((place.path() / "disk").c_str(), &full) == 0);
  CHECK(full.f_bavail == 0);
  store->trim();
  struct statvfs after {};
  REQUIRE(::statvfs((place.path() / "disk").c_str(), &after) == 0);
  CHECK(after.f_bavail * after.f_frsize >= 512 << 10);  // at least half of the store's space
}

TEST_CASE("full disk: a token that cannot be kept is refused with the reason, the files stay whole, row 6") {
  if (!may_mount()) return;
  WholeRun whole(kPlain);
  const SmallDisk disk(whole.data());
  whole.make_tokens();
  const std::string of = " --data-dir " + whole.data().string();
  const Outcome before = test::run("fedge token ls" + of);
  CHECK(before.code == 0);
  disk.fill();
  for (int i = 0; i < 40; ++i) {  // until the log's last page is full as well
    const Outcome refused = test::run("fedge token create --address 127.0.0.1:7433" + of);
    CHECK(refused.code == 1);
    const bool said = contains(refused.output, "No space left on device") ||
                      contains(refused.output, "enrolment.db: database or disk is full");
    CHECK_MESSAGE(said, refused.output);
  }
  disk.free();
  const Outcome audit = test::run("fedge audit verify" + of);
  CHECK_MESSAGE(audit.code == 0, audit.output);
  CHECK(test::run("fedge token ls" + of).output == before.output);
  CHECK(test::run("fedge token create --address 127.0.0.1:7433" + of).code == 0);
}
