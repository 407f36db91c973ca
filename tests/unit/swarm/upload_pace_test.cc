#include "swarm/peer/upload_pace.h"

#include <doctest/doctest.h>

namespace fedge::swarm {

TEST_CASE(
    "upload pace: as many bytes a second as it says, whatever their pieces, with timers that are late") {
  for (const std::size_t piece : {1'000U, 100'000U, 4'000'000U})
    for (const Duration late : {Duration::zero(), Duration(std::chrono::milliseconds(20))}) {
      CAPTURE(piece);
      UploadPace pace(1'000'000);
      double sent = 0;
      Time now(seconds(5));
      const Time end = now + seconds(100);
      while (now < end) {
        if (pace.ready(now)) {
          pace.spend(piece, now);
          sent += static_cast<double>(piece);
        } else {
          now = pace.next() + late;
        }
      }
      CHECK(sent <= 1e8 + 1e5 + static_cast<double>(piece));
      CHECK(sent >= 0.99e8 - static_cast<double>(piece));
    }
}

TEST_CASE("upload pace: a pause is not made up for, beyond a tenth of a second") {
  UploadPace pace(1'000'000);
  const Time later(seconds(1000));
  std::size_t sent = 0;
  while (pace.ready(later)) {
    pace.spend(10'000, later);
    sent += 10'000;
  }
  CHECK(sent >= 100'000);
  CHECK(sent <= 120'000);
}

TEST_CASE("upload pace: without a limit it is always ready") {
  UploadPace pace(0);
  CHECK_FALSE(pace.limited());
  pace.spend(1U << 30, Time(seconds(1)));
  CHECK(pace.ready(Time{}));
}

}  // namespace fedge::swarm
