#include "protocol/session/detail/link_watch.h"

#include <doctest/doctest.h>

#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

using std::chrono::milliseconds;

// A tick a second: silence and unread output end the link after 12 of them.
constexpr Timeouts kTicks{
    .ping = milliseconds(4000), .idle = milliseconds(12'000), .slow_grace = milliseconds(5000)};

// Ticks with the same observation until the link ends or asks, at most this often; returns the last verdict
// and the number of ticks.
std::pair<LinkWatch::Verdict, int> tick_until_heard(LinkWatch& watch, const LinkWatch::Observed& observed,
                                                    int most) {
  for (int ticks = 1;; ++ticks) {
    const auto verdict = watch.tick(observed);
    if (verdict.lost || verdict.at_fault || ticks == most) return {verdict, ticks};
  }
}

}  // namespace

TEST_CASE("link watch: a silent peer is asked each ping interval, and given up after the idle time") {
  LinkWatch watch(kTicks);
  CHECK(watch.interval() == milliseconds(1000));
  CHECK_FALSE(watch.tick({.received = 7}).ping);
  for (int tick = 1; tick < 12; ++tick) {
    CAPTURE(tick);
    const auto verdict = watch.tick({.received = 7});
    CHECK(verdict.ping == (tick % 4 == 0));
    CHECK_FALSE(verdict.lost);
  }
  const auto verdict = watch.tick({.received = 7});
  REQUIRE(verdict.lost);
  CHECK(verdict.lost->message == "the peer has sent nothing for 12 s");
}

TEST_CASE("link watch: a byte ends the silence") {
  LinkWatch watch(kTicks);
  for (std::uint64_t tick = 0; tick < 100; ++tick) CHECK_FALSE(watch.tick({.received = 1 + tick / 11}).lost);
}

TEST_CASE("link watch: only output that waits makes a peer one that does not read") {
  LinkWatch watch(kTicks);
  std::uint64_t received = 0;
  for (int tick = 0; tick < 100; ++tick) CHECK_FALSE(watch.tick({.received = ++received}).lost);
  int ticks = 0;
  LinkWatch::Verdict verdict;
  while (!verdict.lost && ++ticks < 100) verdict = watch.tick({.received = ++received, .has_output = true});
  CHECK(ticks == 12);
  REQUIRE(verdict.lost);
  CHECK(verdict.lost->message == "the peer has not read any bytes for 12 s");
}

TEST_CASE("link watch: a frame may be slow for its grace, then it needs the least rate") {
  const auto ends_after = [](std::size_t bytes_a_tick) {
    LinkWatch watch(kTicks);
    LinkWatch::Observed observed;
    for (int tick = 1; tick <= 100; ++tick) {
      observed.received += bytes_a_tick;
      observed.in_hand += bytes_a_tick;
      if (const auto verdict = watch.tick(observed); verdict.at_fault) return tick;
    }
    return 0;
  };
  CHECK(ends_after(1) == 6);
  CHECK(ends_after(kMinBytesPerSecond / 2) == 11);  // 11 ticks give 5.5 s of bytes, of 6 s that count
  CHECK(ends_after(kMinBytesPerSecond) == 0);
}

TEST_CASE("link watch: each frame has its own grace") {
  LinkWatch watch(kTicks);
  LinkWatch::Observed observed;
  for (int tick = 0; tick < 100; ++tick) {
    if (tick % 5 == 0) watch.frame_ended();
    observed.received += 1;
    observed.in_hand = 1;
    CHECK_FALSE(watch.tick(observed).at_fault);
  }
  CHECK(tick_until_heard(watch, {.received = 200, .in_hand = 1}, 100).second == 1);
}

TEST_CASE("link watch: control frames are limited by number and by bytes in each tick") {
  LinkWatch watch(kTicks);
  for (int tick = 0; tick < 2; ++tick) {
    for (std::size_t i = 0; i < kMaxControlFramesPerTick; ++i) REQUIRE(watch.control_frame(0));
    watch.tick({});
  }
  for (std::size_t i = 0; i < kMaxControlFramesPerTick; ++i) REQUIRE(watch.control_frame(0));
  CHECK(watch.control_frame(0).error().code == ErrorCode::kResource);
  watch.tick({});
  CHECK(watch.control_frame(kMaxControlBytesPerTick));
  CHECK(watch.control_frame(1).error().code == ErrorCode::kResource);
}

}  // namespace fedge::protocol
