#include "server/report/page/html.h"
#include "server/report/page/page_frame.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/crypto/sha256.h"
#include "tests/support/text.h"
#include "tests/unit/server/report/one_round.h"

namespace fedge::server {
namespace {

using test::contains;
using test::count;

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const auto begin = text.find(open) + open.size();
  return text.substr(begin, text.find(close, begin) - begin);
}

}  // namespace

TEST_CASE("html: the page shows the run's figures") {
  ReportInfo info{"fashion-dirichlet", "[run]\nseed = 7\n", {"T-shirt/top"}, {{"Strategy", "fedavg"}}};
  std::vector<RoundMetrics> rounds = {one_round(1), one_round(2)};
  rounds[0].test_accuracy = 0.91;
  const std::string page = report_html(info, rounds);
  for (const char* part : {"<title>fashion-dirichlet</title>",
                           "81.25 %",
                           "91.00 %",
                           "20 of 24 trainings completed",
                           "35.1 MB",
                           "15.9 MB upload, 19.1 MB download",
                           "25.0 s",
                           "00ffaaaaaaaa",
                           "T-shirt/top",
                           "class 1",
                           "seed = 7",
                           "<dt>Strategy</dt><dd>fedavg</dd>",
                           "<dt>Mode</dt><dd>abstract: simulated clients, virtual time</dd>",
                           "<h2>Accuracy and loss</h2>",
                           "<h2>Participation</h2>",
                           "<h2>Privacy</h2>",
                           "<h2>Traffic</h2>",
                           "<h2>Time</h2>",
                           "Traffic per round",
                           "Virtual time per round",
                           "Wall-clock time per round",
                           "<td>10/12</td>"}) {
    CHECK_MESSAGE(contains(page, part), part);
  }
  CHECK(contains(page, "Accuracy on the test data"));
  info.evaluated_on = "validation";
  const std::string validated = report_html(info, rounds);
  for (const char* part :
       {"Accuracy on the validation data", "Final validation loss", "<th>validation loss</th>"})
    CHECK_MESSAGE(contains(validated, part), part);
  CHECK(!contains(validated, "test loss"));
  for (RoundMetrics& round : rounds) round.virtual_seconds = round.wall_seconds;
  CHECK(contains(report_html(info, rounds), "<dd>concrete: real clients, real time</dd>"));
  for (const char* tag : {"figure", "svg", "div", "main", "table", "tr", "p", "dl", "output", "span",
                          "button", "desc", "style"}) {
    const std::string name = tag;
    CHECK_MESSAGE(
        count(page, "<" + name + ">") + count(page, "<" + name + " ") == count(page, "</" + name + ">"),
        name);
  }
}

TEST_CASE("html: the page of a run that ended early says how many of the planned rounds it has") {
  ReportInfo info{"run", "", {}, {}};
  const std::vector<RoundMetrics> rounds = {one_round(1), one_round(2)};
  CHECK(!contains(report_html(info, rounds), "planned rounds"));
  info.planned_rounds = 2;
  CHECK(!contains(report_html(info, rounds), "planned rounds"));
  info.planned_rounds = 30;
  CHECK(contains(report_html(info, rounds), "<p>The run completed 2 of 30 planned rounds.</p>"));
}

TEST_CASE("html: the page of a run that failed says so first, and why") {
  ReportInfo info{"run", "", {}, {}};
  const std::vector<RoundMetrics> rounds = {one_round(1)};
  CHECK(!contains(report_html(info, rounds), "The run failed"));
  info.failure = "the model has diverged: <loss>";
  const std::string said =
      "<p class=\"failed\"><b>The run failed:</b> the model has diverged: &lt;loss&gt;.</p>\n";
  for (const auto& shown : {rounds, std::vector<RoundMetrics>()}) {
    const std::string page = report_html(info, shown);
    CHECK(contains(page, said));
    CHECK(page.find(said) < page.find("<dl"));
  }
}

TEST_CASE("html: a text's page shows its bits and its adapters' ranks, and no group that was not tested") {
  std::vector<RoundMetrics> rounds = {one_round(1), one_round(2)};
  rounds[1].per_class_accuracy = rounds[0].per_class_accuracy = {0.75, kNotMeasured};
  rounds[1].ranks = {{.rank = 4, .accuracy = 0.5, .loss = std::log(8.0), .bits_per_byte = 3.0},
                     {.rank = 8, .accuracy = 0.625, .loss = std::log(4.0), .bits_per_byte = 2.0}};
  const std::string page = report_html({"wordnet", "", {"noun.animal", "noun.motive"}, {}}, rounds);
  for (const char* part :
       {"Final bits per byte", "Bits per byte of test text", "mean of groups", "Accuracy per adapter rank",
        "Bits per byte by rank", "rank, after round 2", "rank 4", "rank 8", "noun.animal",
        "Accuracy per group", "<td>8</td><td>62.50 %</td><td>1.386</td><td>2.000</td><td>4.000</td>"}) {
    CHECK_MESSAGE(contains(page, part), part);
  }
  CHECK_FALSE(contains(page, "noun.motive"));
  CHECK(count(page, "<figure") == count(page, "</figure>"));
  rounds[0].bits_per_byte = rounds[1].bits_per_byte = kNotMeasured;
  rounds[0].ranks = rounds[1].ranks = {};
  rounds[0].group_bits_per_byte = rounds[1].group_bits_per_byte = kNotMeasured;
  const std::string other = report_html({"fashion", "", {"T-shirt/top"}, {}}, rounds);
  for (const char* part : {"its per byte", "Accuracy per adapter rank", "Accuracy per group"})
    CHECK_FALSE_MESSAGE(contains(other, part), part);
}

TEST_CASE(
    "html: a confusion matrix shows shares of the true classes, of the coordinator's evaluation first") {
  const ReportInfo info{"run", "", {"cat", "<dog>"}, {}};
  RoundMetrics round = one_round(4);
  CHECK_FALSE(contains(report_html(info, {{round}}), "Confusion matrix"));
  round.evaluation.emplace().confusion = {5, 5, 0, 1};
  CHECK(contains(report_html(info, {{round}}), "(after round 4, on the clients' samples:"));
  CHECK(contains(report_html(info, {{round}}), "title=\"5 of 10\""));
  round.test.confusion = {3, 1, 0, 0};
  std::string page = report_html(info, {{round}});
  CHECK(contains(page, "Confusion matrix <small>(after round 4, on the test samples:"));
  CHECK(contains(page, R"(<tr><th scope="row">cat</th><td class="c7" title="3 of 4">75.00 %</td>)"
                       R"(<td class="c2" title="1 of 4">25.00 %</td><td>4</td></tr>)"));
  // A class without samples divides nothing by zero.
  CHECK(contains(page, R"(<tr><th scope="row">&lt;dog&gt;</th><td class="c0" title="0 of 0">0</td>)"));
  CHECK_FALSE(contains(page, "title=\"5 of 10\""));
}

TEST_CASE("html: text from outside cannot become markup") {
  const std::string attack = "<script>alert('1')</script>\"&";
  RoundMetrics hostile = one_round(1);
  hostile.model_hash = "\"><img>";
  const std::string page = report_html({attack, attack, {attack, attack}, {{attack, attack}}}, {{hostile}});
  CHECK_FALSE(contains(page, "<script>alert"));
  CHECK_FALSE(contains(page, "<img>"));
  CHECK(count(page, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;") >= 6);
  CHECK(count(page, "<script>") == 1);
  CHECK(escape_html("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
}

TEST_CASE("html: the page needs nothing from elsewhere, and its policy names its own style and script") {
  const std::string page = report_html({"run", "", {}, {}}, {{one_round(1)}});
  // The only address is the name of SVG's namespace, which no browser loads.
  const std::string name = "xmlns=\"http://www.w3.org/2000/svg\"";
  CHECK(count(page, "http:") == count(page, name));
  for (const char* part : {"https:", "src=", "href=", "@import", "url(", "style=\"", "onload"}) {
    CHECK_FALSE_MESSAGE(contains(page, part), part);
  }
  // A base64 digit is six bits; the first eight digits are the first six bytes of the hash.
  const auto hash_starts = [&](const std::string& content, const std::string& directive) {
    const std::string digits = between(page, directive + " 'sha256-", "'");
    REQUIRE(digits.size() == 44);
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 6 | alphabet.find(digits[static_cast<std::size_t>(i)]);
    const auto digest = sha256(content);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < 6; ++i) expected = expected << 8 | digest[i];
    return bits == expected;
  };
  const std::string figure = page.substr(page.find("<svg"));
  CHECK(hash_starts(between(page, "<style>", "</style>"), "style-src"));
  const std::string first = "style-src 'sha256-" + between(page, "style-src 'sha256-", "'") + "'";
  CHECK(hash_starts(between(figure, "<style>", "</style>"), first));
  // All figures share one style, which is the second that the policy lists.
  CHECK(count(page, "<style>" + between(figure, "<style>", "</style>") + "</style>") == count(page, "<svg "));
  CHECK(hash_starts(between(page, "<script>", "</script>"), "script-src"));
}

TEST_CASE("html: diverged, unmeasured and absent rounds make a page without a broken number") {
  CHECK(contains(report_html({"run", "", {}, {}}, {}), "The run has not completed a round"));
  RoundMetrics diverged = one_round(2);
  diverged.test_loss = 1e300;
  diverged.train_loss = std::numeric_limits<double>::infinity();
  RoundMetrics unmeasured = one_round(3);
  unmeasured.test_accuracy = kNotMeasured;
  unmeasured.test_loss = kNotMeasured;
  unmeasured.per_class_accuracy = {};
  unmeasured.virtual_seconds = kNotMeasured;
  for (const auto& rounds : {std::vector<RoundMetrics>{one_round(1), diverged, unmeasured},
                             std::vector<RoundMetrics>{unmeasured}, std::vector<RoundMetrics>{diverged}}) {
    const std::string page = report_html({"run", "", {}, {}}, rounds);
    const std::string body = page.substr(page.find("<main>"), page.find("<script>") - page.find("<main>"));
    CHECK_FALSE(contains(body, "nan"));
    CHECK_FALSE(contains(body, "inf"));
    CHECK(page.ends_with("</html>\n"));
  }
}

}  // namespace fedge::server
