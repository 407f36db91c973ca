// The text of a sensor's stream: its lines, its clock, its faults. The numbered invariants are those of the
// specification of event screening.
#include "learn/screening/stream_screening.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/screening/confirmation.h"
#include "learn/synthetic/road.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

// A stream that is quiet but for shocks of half a second, which begin at these seconds.
struct StreamSketch {
  double seconds = 60;
  std::vector<double> shocks = {20, 40};
  double rate = 100;
  double start = 0;
  bool labelled = true;
};

std::string stream_text(const StreamSketch& spec, bool names = true) {
  Rng rng(3);
  std::string text = names ? (spec.labelled ? "seconds,z,label\n" : "seconds,z\n") : "";
  const auto count = static_cast<std::size_t>(spec.seconds * spec.rate);
  for (std::size_t i = 0; i < count; ++i) {
    const double seconds = static_cast<double>(i) / spec.rate;
    bool shock = false;
    for (const double at : spec.shocks) shock = shock || (seconds >= at && seconds < at + 0.5);
    const double z = (shock ? 2.0 : 0.05) * rng.normal();
    text += std::to_string(spec.start + seconds) + "," + std::to_string(z);
    text += spec.labelled ? (shock ? ",1\n" : ",0\n") : "\n";
  }
  return text;
}

struct StreamOutcome {
  std::vector<KeptSegment> segments;
  std::vector<std::string> faults;  // "kind: what"
  StreamFigures figures;
  std::size_t memory = 0;
  std::size_t of_kind(const std::string& kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(faults, [&](const std::string& one) { return one.starts_with(kind + ": "); }));
  }
};

// Rules that open no event in noise.
StreamSpec firm() {
  StreamSpec spec;
  spec.screening.open = 5;
  return spec;
}

StreamOutcome screen_text(const std::string& text, const StreamSpec& spec = firm(),
                          std::size_t chunk = SIZE_MAX) {
  StreamOutcome outcome;
  StreamScreening screening(spec);
  const StreamScreening::Handlers handlers{
      .on_segment = [&](KeptSegment segment) { outcome.segments.push_back(std::move(segment)); },
      .on_fault = [&](const char* kind,
                      const std::string& what) { outcome.faults.push_back(kind + (": " + what)); }};
  for (std::size_t at = 0; at < text.size(); at += std::min(chunk, text.size() - at))
    screening.push(std::string_view(text).substr(at, chunk), handlers);
  screening.end(handlers);
  outcome.figures = screening.figures();
  outcome.memory = screening.memory_bytes();
  return outcome;
}

bool same_segment(const KeptSegment& a, const KeptSegment& b) {
  return a.seconds == b.seconds && a.begin == b.begin && a.values == b.values && a.labels == b.labels;
}

}  // namespace

TEST_CASE("stream: the events of a text are kept with their times, labels and context") {
  const StreamOutcome outcome = screen_text(stream_text({.start = 1000}));
  CHECK(outcome.faults.empty());
  CHECK(outcome.figures.samples == 6000);
  REQUIRE(outcome.segments.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const KeptSegment& segment = outcome.segments[i];
    CAPTURE(i);
    const double shock = 1020 + 20.0 * static_cast<double>(i);
    CHECK(segment.seconds > shock - 0.8);
    CHECK(segment.seconds < shock - 0.5);
    CHECK(segment.labels.size() == segment.samples());
    CHECK(std::ranges::count(segment.labels, 1) == 50);
    // The label's first sample is at the time of the shock.
    const auto first = std::ranges::find(segment.labels, 1) - segment.labels.begin();
    CHECK(segment.seconds + static_cast<double>(first) / 100 == doctest::Approx(shock).epsilon(1e-6));
  }
}

TEST_CASE("stream: any division of the text gives the same_segment segments") {
  std::string text = stream_text({});
  text.insert(text.size() / 2, "\nnonsense,1,2,3\n");
  const StreamOutcome whole = screen_text(text);
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
    const StreamOutcome divided = screen_text(text, firm(), chunk);
    CHECK(divided.figures == whole.figures);
    CHECK(divided.faults == whole.faults);
    CHECK(std::ranges::equal(divided.segments, whole.segments, same_segment));
  }
}

TEST_CASE("stream: lines that are no samples are counted, named, and end the piece before them") {
  struct Case {
    const char* line;
    const char* what;
  };
  for (const Case& one :
       {Case{"20.305,nan,1", "a field is \"nan\", expected a finite number"},
        Case{"20.305,inf,1", "a field is \"inf\""}, Case{"20.305,,1", "a field is \"\""},
        Case{"20.305,1e300,1", "expected a number of at most 1e+09"},
        Case{"20.305,0.1", "a line has 2 fields, expected 3"},
        Case{"20.305,0.1,1,1", "a line has 4 fields, expected 3"},
        Case{"20.305,0.1,1.5", "a label is \"1.5\", expected an integer from 0 to 255"},
        Case{"20.305,0.1,256", "a label is \"256\""}, Case{"\x01\x02", "a line has 1 fields"},
        Case{"ERROR: timeout", "a line has 1 fields"}, Case{"e-05,0.2,1", "a field is \"e-05\""},
        Case{"seconds,seconds,z", "the stream has two columns \"seconds\""},
        Case{"seconds,label", "the stream has no column \"z\""},
        Case{"seconds,x,y,label", "the stream has no column \"z\""}}) {
    CAPTURE(one.line);
    std::string text = stream_text({});
    // In the middle of the first shock.
    text.insert(text.find("20.310"), std::string(one.line) + "\n");
    const StreamOutcome outcome = screen_text(text);
    REQUIRE(!outcome.faults.empty());
    CHECK(outcome.faults.front().find(one.what) != std::string::npos);
    CHECK(outcome.figures.broken >= 1);
    for (const KeptSegment& segment : outcome.segments) {
      const double end = segment.seconds + static_cast<double>(segment.samples() - 1) / 100;
      CHECK_FALSE((segment.seconds < 20.305 && end > 20.305));
    }
    // A line of columns that are wrong makes all that follow unreadable, until the columns are named again.
    const bool names = std::string(one.line).find("seconds") != std::string::npos;
    CHECK(outcome.figures.samples == (names ? 2031 : 6000));
  }
}

TEST_CASE("stream: a stream without names, or with an endless line, is refused in bounded memory") {
  CHECK(screen_text("seconds,label\n").faults.front().find("no column of a sensor") != std::string::npos);
  const StreamOutcome unnamed = screen_text(stream_text({}, false));
  CHECK(unnamed.figures.samples == 0);
  CHECK(unnamed.faults.front().find("no line has named the columns") != std::string::npos);
  const StreamOutcome endless =
      screen_text(std::string(3'000'000, '7') + "\n" + stream_text({}), firm(), 1000);
  CHECK(endless.figures.broken == 1);
  CHECK(endless.faults.front().find("a line has more than 4096 bytes") != std::string::npos);
  CHECK(endless.segments.size() == 2);
  CHECK(endless.memory < 64 * 1024);
}

TEST_CASE("stream: the writer may be restarted, and names its columns again") {
  const StreamOutcome outcome = screen_text(stream_text({}) + stream_text({.start = 60}));
  CHECK(outcome.figures.samples == 12'000);
  CHECK(outcome.segments.size() == 4);
  CHECK(outcome.faults.empty());
}

TEST_CASE("stream: a writer that is restarted may have its columns in another order") {
  std::string text = "seconds,x,y,label\n";
  for (int i = 0; i < 2000; ++i) text += std::to_string(i / 100.0) + ",1,2,0\n";
  text += "label,y,x,seconds\n";
  for (int i = 2000; i < 4000; ++i) {
    const bool shock = i >= 3000 && i < 3050;
    text += (shock ? "1,2," : "0,2,") + std::to_string(shock ? 1 + i % 2 * 4.0 : 1.0) + "," +
            std::to_string(i / 100.0) + "\n";
  }
  const StreamOutcome outcome = screen_text(text);
  CHECK(outcome.faults.empty());
  REQUIRE(outcome.segments.size() == 1);
  for (std::size_t i = 0; i < outcome.segments.front().samples(); ++i)
    CHECK(outcome.segments.front().values[2 * i + 1] == 2);
  CHECK(std::ranges::count(outcome.segments.front().labels, 1) == 50);
}

TEST_CASE("stream: the rate is measured in a faulty stream, too, and of a slow sensor") {
  // A bad line in every second.
  const auto faulty = [](double rate) {
    std::string text = "seconds,z\n";
    for (int i = 0; i < 40 * static_cast<int>(rate); ++i) {
      if (i % static_cast<int>(rate) == 0) text += "oops\n";
      text += std::to_string(i / rate) + ",0\n";
    }
    return screen_text(text);
  };
  CHECK(faulty(50).of_kind("rate") == 1);
  CHECK(faulty(100).of_kind("rate") == 0);
  StreamSpec slow = firm();
  slow.screening.rate_hz = 1;
  slow.screening.high_pass_hz = 0;
  slow.screening.most_seconds = 60;
  std::string text = "seconds,z\n";
  for (int i = 0; i < 4000; ++i)
    text += std::to_string(i) + "," + (i >= 3000 && i < 3030 ? "9" : "0.01") + "\n";
  const StreamOutcome outcome = screen_text(text, slow);
  CHECK(outcome.faults.empty());
  CHECK(outcome.segments.size() == 1);
}

TEST_CASE("stream: no segment reaches over a gap or a step of the clock") {
  const std::string first = stream_text({.seconds = 20.2, .shocks = {20}});
  for (const double start : {500.0, 3.0}) {
    const StreamOutcome outcome =
        screen_text(first + stream_text({.seconds = 20, .shocks = {0, 10}, .start = start}, false));
    CHECK(outcome.figures.gaps == (start > 100 ? 1 : 0));
    CHECK(outcome.figures.clock_steps == (start > 100 ? 0 : 1));
    CHECK(outcome.of_kind(start > 100 ? "gap" : "clock") == 1);
    REQUIRE(outcome.segments.size() >= 2);
    for (const KeptSegment& segment : outcome.segments) {
      const bool before = segment.begin + segment.samples() <= 2020;
      CHECK((before || segment.begin >= 2020));
      CHECK(segment.seconds ==
            doctest::Approx(before ? static_cast<double>(segment.begin) / 100
                                   : start + static_cast<double>(segment.begin - 2020) / 100));
    }
  }
}

TEST_CASE("stream: nothing is kept while the rate is wrong, and everything once it is right") {
  for (const double rate : {50.0, 200.0}) {
    const std::string wrong = stream_text({.seconds = 40, .shocks = {20, 30}, .rate = rate});
    const std::string right = stream_text({.seconds = 40, .shocks = {20}, .start = 40.01}, false);
    const StreamOutcome outcome = screen_text(wrong + right);
    CHECK(outcome.of_kind("rate") == 1);
    CHECK(outcome.faults.front().find("samples a second, expected 100 (rate_hz)") != std::string::npos);
    CHECK(outcome.figures.wrong_rate > static_cast<std::uint64_t>(rate * 30));
    REQUIRE(outcome.segments.size() == 1);
    CHECK(outcome.segments.front().seconds > 59);
  }
  // A flood of samples at one time.
  std::string flood = "seconds,z\n";
  for (int i = 0; i < 5000; ++i) flood += "1,0.5\n";
  const StreamOutcome flooded = screen_text(flood);
  CHECK(flooded.segments.empty());
  CHECK(flooded.of_kind("rate") == 1);
  CHECK(flooded.faults.front().find("far more samples a second") != std::string::npos);
}

TEST_CASE("stream: a known speed scales the signal, and channels and signal are chosen by name") {
  std::string text = "seconds,x,speed,y\n";
  for (int i = 0; i < 3000; ++i) {
    const bool shock = i >= 2000 && i < 2050;
    text += std::to_string(i / 100.0) + "," + std::to_string(shock ? i % 2 * 2.0 - 1 : 0.0) + ",20," +
            std::to_string(i % 2 * 0.02) + "\n";
  }
  StreamSpec spec;
  spec.signal = {"x"};
  const StreamOutcome both = screen_text(text, spec);
  REQUIRE(both.segments.size() == 1);
  CHECK(both.segments.front().channels == 2);
  spec.signal = {"y"};
  CHECK(screen_text(text, spec).segments.empty());
  spec.signal = {"w"};
  CHECK(screen_text(text, spec).faults.front().find("the stream has no channel \"w\"") != std::string::npos);
  spec.signal = {};
  spec.channels = {"x"};
  const StreamOutcome one = screen_text(text, spec);
  REQUIRE(one.segments.size() == 1);
  CHECK(one.segments.front().channels == 1);
  // (20 / 10)^0.7 lowers a shock of 1 below a threshold of 0.8, and not one of 0.5.
  for (const double threshold : {0.8, 0.5}) {
    spec.screening.threshold = threshold;
    CHECK(screen_text(text, spec).segments.size() == (threshold > 0.7 ? 0 : 1));
  }
}

TEST_CASE("stream: windows have the length of a sample, cover the segment, and are padded with its mean") {
  for (const std::size_t samples : {1UL, 100UL, 255UL, 256UL, 257UL, 384UL, 385UL, 1000UL}) {
    CAPTURE(samples);
    KeptSegment segment{.seconds = 10, .channels = 2};
    for (std::size_t i = 0; i < samples; ++i) {
      segment.values.insert(segment.values.end(), {static_cast<float>(i), 5.0F});
      segment.labels.push_back(static_cast<std::uint8_t>(1 + i % 3));
      segment.metres.push_back(static_cast<float>(i));
    }
    const auto windows = windows_of(segment, 256, 100);
    CHECK(windows.size() == window_count(samples, 256));
    std::vector<bool> covered(samples, false);
    for (const StreamWindow& window : windows) {
      REQUIRE(window.values.size() == 512);
      REQUIRE(window.labels.size() == 256);
      double sum = 0;
      for (std::size_t i = window.begin; i < window.end; ++i) {
        const auto number = static_cast<std::size_t>(window.values[2 * i]);
        covered[number] = true;
        sum += static_cast<double>(window.values[2 * i]);
        CHECK(window.labels[i] == 1 + number % 3);
        CHECK(window.seconds + static_cast<double>(i) / 100 ==
              doctest::Approx(10 + static_cast<double>(number) / 100));
      }
      const double mean = sum / static_cast<double>(window.end - window.begin);
      for (std::size_t i = 0; i < 256; ++i) {
        CHECK(window.values[2 * i + 1] == 5);
        if (i >= window.begin && i < window.end) continue;
        CHECK(static_cast<double>(window.values[2 * i]) == doctest::Approx(mean));
        CHECK(window.labels[i] == 0);
      }
      REQUIRE(window.metres);
      CHECK((*window.metres)[0] == static_cast<double>(window.values[2 * window.begin]));
      CHECK((*window.metres)[1] == static_cast<double>(window.values[2 * window.end - 2]));
    }
    CHECK(std::ranges::all_of(covered, [](bool one) { return one; }));
    if (samples > 256)
      for (std::size_t i = 1; i + 1 < windows.size(); ++i)
        CHECK(windows[i].values[0] - windows[i - 1].values[0] == 128);
  }
}

TEST_CASE("stream: invariant 8, the saving is that of the counted bytes") {
  const StreamOutcome outcome = screen_text(stream_text({}));
  std::uint64_t windows = 0;
  std::uint64_t bytes = 0;
  for (const KeptSegment& segment : outcome.segments)
    for (const StreamWindow& window : windows_of(segment, 256, 100)) {
      ++windows;
      bytes += 2 * window.values.size() + 4 * sizeof(double);
    }
  CHECK(windows == 2);
  CHECK(window_bytes(windows, 256, 1) == bytes);
  CHECK(bytes_saved(outcome.figures.samples, windows, 256, 1) ==
        doctest::Approx(1 - static_cast<double>(bytes) / (2.0 * 6000)));
  CHECK(bytes_saved(0, 0, 256, 1) == 0);
  CHECK(bytes_saved(10, 1, 256, 1) < 0);
}

TEST_CASE("stream: an hour without events takes no more memory than a minute") {
  const auto quiet = [](double seconds) {
    return screen_text(stream_text({.seconds = seconds, .shocks = {}}));
  };
  CHECK(quiet(60).memory == quiet(3600).memory);
  CHECK(quiet(60).memory < 64 * 1024);
}

TEST_CASE("stream file: its keys are read, and errors name the file and the key") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "road.toml";
  const auto read = [&](const std::string& text) {
    test::write_text(file, text);
    return read_stream_file(file);
  };
  const auto given =
      read("rate_hz = 104\nchannels = [\"x\", \"y\"]\nsignal = [\"y\"]\nwindow = 128\nopen = 4\n");
  REQUIRE(given);
  CHECK(given->screening.rate_hz == 104);
  CHECK(given->channels == std::vector<std::string>{"x", "y"});
  CHECK(given->window == 128);
  CHECK(given->screening.open == 4);
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"rate_hz = 0\n", "rate_hz"},
           {"opens = 3\n", "opens"},
           {"open = 1\nclose = 2\n", "the score at which an event closes"},
           {"channels = [\"x\", \"x\"]\n", "lists \"x\" twice"},
           {"channels = [\"x\"]\nsignal = [\"y\"]\n", "signal: \"y\" is not one of the channels"},
           {"rate_hz = 100000\nmost_seconds = 60\ncontext_seconds = 60\n", "would hold"}}) {
    CAPTURE(text);
    const auto refused = read(text);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("road.toml") != std::string::npos);
    CHECK(refused.error().message.find(message) != std::string::npos);
  }
  CHECK(describe_stream_file().size() >= 20);
}

TEST_CASE("confirmation: places at which enough vehicles found an event of one class") {
  const std::vector<Detection> detections = {{0, 100, 1}, {1, 103, 1}, {2, 104.5, 1}, {2, 104.9, 1},
                                             {0, 200, 1}, {1, 201, 2}, {2, 202, 1},   {0, 300, 2},
                                             {0, 301, 2}, {0, 302, 2}, {3, 105.5, 1}};
  const auto places = confirm(detections, 5, 3);
  REQUIRE(places.size() == 1);
  CHECK(places[0].vehicles == 3);
  CHECK(places[0].metres == doctest::Approx((100 + 103 + 104.5 + 104.9) / 4));
  // Whatever their order, and a vehicle counts once.
  std::vector<Detection> reversed(detections.rbegin(), detections.rend());
  CHECK(confirm(reversed, 5, 3).front().metres == places[0].metres);
  CHECK(confirm(detections, 5, 2).size() == 2);
  CHECK(confirm(detections, 5, 1).size() == 5);
  CHECK(confirm({}, 5, 1).empty());
}

TEST_CASE(
    "road: streams are a function of the seed, differ between vehicles, and have events of every class") {
  const RoadSpec spec{.seconds = 600, .mix = 100, .seed = 4};
  const auto first = road_text(road_stream(spec, 0));
  CHECK(first == road_text(road_stream(spec, 0)));
  CHECK(first != road_text(road_stream(spec, 1)));
  std::array<std::size_t, 5> counts{};
  double square = 0;
  const auto samples = road_stream(spec, 0);
  for (const RoadSample& sample : samples) {
    ++counts.at(sample.label);
    square += sample.z * sample.z;
    CHECK(sample.speed >= 20 / 3.6 - 1e-9);
    CHECK(sample.speed <= 60 / 3.6 + 1e-9);
  }
  for (const std::size_t count : counts) CHECK(count > 0);
  CHECK(counts[0] > samples.size() * 9 / 10);
  const double strength = std::sqrt(square / static_cast<double>(samples.size()));
  CHECK(strength > 0.02);
  CHECK(strength < 1);
  CHECK(screen_text(first).figures.samples == samples.size());
}

TEST_CASE("road: vehicles on the same_segment road meet the same_segment events at the same_segment places") {
  RoadSpec spec{.seconds = 300, .same_road = true, .seed = 2};
  const auto places = [&](std::size_t vehicle) {
    std::vector<std::pair<double, int>> starts;
    int last = 0;
    for (const RoadSample& sample : road_stream(spec, vehicle)) {
      if (sample.label != last && sample.label != 0) starts.push_back({sample.metres, sample.label});
      last = sample.label;
    }
    return starts;
  };
  const auto a = places(0), b = places(1);
  const std::size_t common = std::min(a.size(), b.size());
  REQUIRE(common >= 3);
  for (std::size_t i = 0; i < common; ++i) {
    CHECK(std::abs(a[i].first - b[i].first) < 0.5);
    CHECK(a[i].second == b[i].second);
  }
  spec.same_road = false;
  CHECK(places(0) != places(1));
}

}  // namespace fedge::learn
