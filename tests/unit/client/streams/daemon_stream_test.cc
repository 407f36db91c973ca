// A daemon whose data is the stream of a sensor, beside a scripted coordinator: when it answers a run, and
// what its answers say.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "client/diagnosis/status_file.h"
#include "core/rng.h"
#include "tests/unit/client/secure_turn.h"

namespace fedge::client {
namespace {

using site::kFirst;
using site::SecureTurn;
using site::Site;

const std::string kShocks = R"([data]
dataset = "arrays"
name = "road"
shape = [64, 1]
task = "segmentation"
points = 64
point_seconds = 0.01
classes = ["background", "shock"]
partition = { kind = "own", clients = 1 }
split = { kind = "file" }
[model]
kind = "layers"
layer = [{kind = "conv1d", units = 2, kernel = 3, activation = "relu"}, {kind = "conv1d", kernel = 1}]
)";

// Whether the status shows a stream with so many segments.
auto has_kept(std::int64_t segments) {
  return [segments](const DaemonStatus& status) {
    return !status.streams.empty() && status.streams[0].kept == segments;
  };
}

// A site whose client listens to a FIFO and takes part in one run on what it keeps of it.
struct StreamSite {
  StreamSite() {
    const auto fifo = site.data.path() / "sensor";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    // Open for both, so that neither open() waits.
    fifo_ = ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fifo_ >= 0);
    SensorOptions sensor{.name = "road", .source = fifo, .directory = site.state.path() / "streams" / "road"};
    sensor.spec.window = 64;
    // A rule that finds each shock once, in a segment of one window.
    sensor.spec.screening.threshold = 1;
    sensor.spec.screening.warmup_seconds = 1;
    sensor.spec.screening.close_seconds = 0.1;
    sensor.spec.screening.context_seconds = 0.05;
    sensor.test_share = 0;
    site.streams = {std::move(sensor)};
    site.going = {kFirst};
    site.work.text = kShocks;
    auto document = config::parse_toml(kShocks, "run");
    REQUIRE(document);
    config::Reader root(document->root, "", "run");
    const auto task = learn::Task::build_without_data(read_work(root).task, 5, ClientId(0));
    REQUIRE_MESSAGE(task, task.error().message);
    site.work.layout = (*task)->model().layout();
    site.work.begin_from(0.1F);
  }
  ~StreamSite() { ::close(fifo_); }
  StreamSite(const StreamSite&) = delete;
  StreamSite& operator=(const StreamSite&) = delete;

  // Plays ten seconds of the stream, with a shock in the last but one, and waits until it is kept.
  void play() {
    std::string text = second_ == 0 ? "seconds,z,label\n" : "";
    for (int i = 0; i < 1000; ++i) {
      const bool shock = i >= 800 && i < 820;
      text += std::to_string(second_ + i / 100.0) + "," +
              std::to_string((shock ? 2.0 : 0.05) * rng_.normal()) + (shock ? ",1\n" : ",0\n");
    }
    second_ += 10;
    REQUIRE(::write(fifo_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ++played_;
    REQUIRE(site.run_until([&] { return kept() == played_; }));
  }
  std::size_t kept() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        site.said, [](const std::string& line) { return line.starts_with("stream.kept "); }));
  }
  std::vector<protocol::RunAnswer> answers() const {
    std::vector<protocol::RunAnswer> all;
    for (const auto& message : site.heard)
      if (const auto* answer = std::get_if<protocol::RunAnswer>(&message)) all.push_back(*answer);
    return all;
  }
  // The status file once the condition holds for it.
  template <class Condition>
  DaemonStatus status(const Condition& condition) {
    Result<DaemonStatus> read = invalid("not read yet");
    REQUIRE(site.run_until([&] {
      read = read_status(site.state.path());
      return read && condition(*read);
    }));
    return *read;
  }

  Site site;

 private:
  int fifo_ = -1;
  int second_ = 0;
  std::size_t played_ = 0;
  Rng rng_{7};
};

}  // namespace

TEST_CASE("daemon: a run on a stream is answered when a segment is kept, and again before a larger update") {
  StreamSite at;
  Site& site = at.site;
  site.begin();
  REQUIRE(site.has_said("data.waiting run=\"run 7\""));
  const auto waiting = at.status([](const DaemonStatus& status) {
    return status.activity.runs.size() == 1 && !status.streams.empty() &&
           status.activity.runs[0].work == kAwaitsStream;
  });
  CHECK(waiting.streams[0].name == "road");
  CHECK(waiting.streams[0].kept == 0);
  CHECK(at.answers().empty());

  at.play();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  CHECK(at.answers()[0].ready);
  CHECK(at.answers()[0].samples == SampleCount(1));
  // More data changes nothing until a task uses it.
  at.play();
  at.play();
  CHECK(at.status(has_kept(3)).streams[0].bytes > 0);
  CHECK(at.answers().size() == 1);

  site.tell(site.work.request(kFirst, 1));
  REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
  REQUIRE(at.answers().size() == 2);
  CHECK(at.answers()[1].samples == SampleCount(3));
  const auto& offer = std::get<protocol::UpdateOffer>(site.heard.back());  // after both answers
  CHECK(offer.samples == SampleCount(3));
}

TEST_CASE(
    "daemon: where the coordinator must not know how much data there is, it is not told that it grows") {
  StreamSite at;
  Site& site = at.site;
  bool masked = false;
  SUBCASE("masks") {
    masked = true;
    site.work.text += config::canonical_toml({{"masking", {privacy::to_table({.max_weight = 1000}), ""}}});
  }
  SUBCASE("noise of its own") {
    site.work.text +=
        "[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\nfraction_bits = 14\n"
        "max_participations = 5\ndelta = 1e-5\n";
  }
  site.begin();
  at.play();
  REQUIRE(site.hears<protocol::RunAnswer>(kFirst));
  CHECK(at.answers()[0].ready);
  CHECK(at.answers()[0].samples == SampleCount(1));
  at.play();
  at.status(has_kept(2));
  CHECK(at.answers().size() == 1);
  if (masked) {
    SecureTurn turn(site, 1, 1);
    turn.begin();
    REQUIRE(turn.masks());
    CHECK(at.answers().empty());  // begin() forgets the first one
  } else {
    site.tell(site.work.request(kFirst, 1));
    REQUIRE(site.hears<protocol::UpdateOffer>(kFirst));
    CHECK(at.answers().size() == 1);
  }
  CHECK(site::why_not(site).empty());
  CHECK(site.has_said("data.renewed run=\"run 7\" samples=2"));  // to its owner
  const auto& offer = std::get<protocol::UpdateOffer>(site.heard.back());
  CHECK(offer.samples == SampleCount(1));
}

}  // namespace fedge::client
