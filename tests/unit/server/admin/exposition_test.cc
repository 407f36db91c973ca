#include "server/admin/exposition.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/exposition_parser.h"

namespace fedge::server {

using test::parse_exposition;

TEST_CASE("exposition: a family is written as the format's own example has it") {
  LabelledCounts counts;
  counts.add("post", 1027);
  counts.add("get", 3);
  Exposition page;
  page.add({"http_requests_total", MetricType::kCounter, "The total number of HTTP requests.", "method"},
           counts);
  page.add({"metric_without_labels", MetricType::kGauge, "Minimalistic."}, 12.47);
  CHECK(page.text() ==
        "# HELP http_requests_total The total number of HTTP requests.\n"
        "# TYPE http_requests_total counter\n"
        "http_requests_total{method=\"get\"} 3\n"
        "http_requests_total{method=\"post\"} 1027\n"
        "# HELP metric_without_labels Minimalistic.\n"
        "# TYPE metric_without_labels gauge\n"
        "metric_without_labels 12.47\n");
}

TEST_CASE("exposition: backslash, quotation mark and line end are escaped where the format says so") {
  Exposition page;
  page.add({"a", MetricType::kGauge, "C:\\DIR \"x\"\nsecond line", "path"}, "C:\\DIR\\ \"x\"", 1);
  CHECK(page.text() ==
        "# HELP a C:\\\\DIR \"x\"\\nsecond line\n"
        "# TYPE a gauge\n"
        "a{path=\"C:\\\\DIR\\\\ \\\"x\\\"\"} 1\n");
  const auto scrape = parse_exposition(page.text());
  CHECK(scrape.problems.empty());
  CHECK(scrape.value("a", {{"path", "C:\\DIR\\ \"x\""}}) == 1);
}

TEST_CASE("exposition: numbers read back as they were, whole ones without an exponent") {
  const auto written = [](double value) {
    Exposition page;
    page.add({"x", MetricType::kGauge, "h"}, value);
    const std::string& text = page.text();
    return text.substr(text.rfind(' ') + 1, text.size() - text.rfind(' ') - 2);
  };
  CHECK(written(0) == "0");
  CHECK(written(1e6) == "1000000");
  CHECK(written(9007199254740991.0) == "9007199254740991");
  CHECK(written(-3) == "-3");
  CHECK(written(0.1) == "0.1");
  CHECK(std::strtod(written(1.0 / 3).c_str(), nullptr) == 1.0 / 3);
  CHECK(std::strtod(written(1e300).c_str(), nullptr) == 1e300);
  CHECK(written(std::numeric_limits<double>::infinity()) == "+Inf");
  CHECK(written(-std::numeric_limits<double>::infinity()) == "-Inf");
  CHECK(written(std::numeric_limits<double>::quiet_NaN()) == "NaN");
}

TEST_CASE("exposition: buckets of a histogram hold all that is not above them") {
  Histogram histogram({1, 2.5});
  for (const double value : {0.5, 1.0, 1.5, 2.5, 4.0}) histogram.observe(value);
  Exposition page;
  page.add({"d_seconds", MetricType::kHistogram, "h"}, histogram);
  CHECK(page.text() ==
        "# HELP d_seconds h\n"
        "# TYPE d_seconds histogram\n"
        "d_seconds_bucket{le=\"1\"} 2\n"
        "d_seconds_bucket{le=\"2.5\"} 4\n"
        "d_seconds_bucket{le=\"+Inf\"} 5\n"
        "d_seconds_sum 9.5\n"
        "d_seconds_count 5\n");
  CHECK(parse_exposition(page.text()).problems.empty());
}

TEST_CASE("row 56: a million values of a label make a thousand series, and none is lost from the sum") {
  LabelledCounts counts;
  constexpr std::uint64_t kValues = 1'000'000;
  for (std::uint64_t i = 0; i < kValues; ++i) counts.add("value " + std::to_string(i));
  CHECK(counts.series().size() == 1000);
  CHECK(counts.series().at("value 0") == 1);
  CHECK(counts.series().at("other") == kValues - 999);
  counts.add("value 0");
  counts.add("value 2000000");
  CHECK(counts.series().at("value 0") == 2);
  CHECK(counts.series().at("other") == kValues - 998);
}

TEST_CASE("row 45: a label's value from a peer is cut, cleaned and cannot end its line") {
  LabelledCounts counts;
  counts.add("a\"} 1\nfake_total 7\n#");
  counts.add(std::string(100'000, 'x'));
  counts.add("bad \xff\xfe");
  Exposition page;
  page.add({"x_total", MetricType::kCounter, "h", "l"}, counts);
  const auto scrape = parse_exposition(page.text());
  CHECK(scrape.problems.empty());
  CHECK(scrape.samples.size() == 3);
  CHECK(scrape.value("x_total", {{"l", "a\"} 1?fake_total 7?#"}}) == 1);
  CHECK(scrape.value("x_total", {{"l", std::string(128, 'x')}}) == 1);
  CHECK(scrape.value("x_total", {{"l", "bad ??"}}) == 1);
  CHECK_FALSE(scrape.value("fake_total"));
}

TEST_CASE("exposition parser: texts that break the format or its rules are found out") {
  const auto wrong = [](const std::string& text) { return !parse_exposition(text).problems.empty(); };
  const std::string head = "# HELP a_total h\n# TYPE a_total counter\n";
  CHECK_FALSE(wrong(head + "a_total 1\n"));
  CHECK(wrong(head + "a_total 1"));
  CHECK(wrong(head + "a_total 1\na_total 2\n"));
  CHECK(wrong(head + "a_total -1\n"));
  CHECK(wrong(head + "a_total one\n"));
  CHECK(wrong(head + "a_total{l=\"x} 1\n"));
  CHECK(wrong(head + "a_total{l=\"\\x\"} 1\n"));
  CHECK(wrong(head + "a_total{1=\"x\"} 1\n"));
  CHECK(wrong(head + head + "a_total 1\n"));
  CHECK(wrong("a_total 1\n"));
  CHECK(wrong("# HELP a h\n# TYPE a counter\na 1\n"));
  CHECK(wrong("# HELP a_total h\n# TYPE a_total gauge\na_total 1\n"));
  CHECK(wrong(head + "a_total{l=\"1\"} 1\n# HELP b h\n# TYPE b gauge\nb 1\na_total{l=\"2\"} 1\n"));
  CHECK(wrong(
      "# HELP h h\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n"));
  CHECK(wrong("# HELP h h\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 1\nh_count 2\n"));
}

}  // namespace fedge::server
