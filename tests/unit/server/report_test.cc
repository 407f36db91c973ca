#include <doctest/doctest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "core/crypto/sha256.h"
#include "server/report/chart.h"
#include "server/report/html.h"
#include "server/report/metrics.h"
#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::server;

namespace {

RoundMetrics one_round(std::uint64_t round) {
  RoundMetrics metrics;
  metrics.round = round;
  metrics.model_hash = "00ff" + std::string(60, 'a');
  metrics.test_accuracy = 0.8125;
  metrics.test_loss = 0.5;
  metrics.per_class_accuracy = {0.75, 0.875};
  metrics.train_loss = 0.1;  // has no exact double: must read back as the same one
  metrics.clients_selected = 12;
  metrics.clients_completed = 10;
  metrics.bytes_up = 7968400;
  metrics.bytes_down = 9562080;
  metrics.virtual_seconds = 12.5 * static_cast<double>(round);
  metrics.wall_seconds = 0.25 * static_cast<double>(round);
  metrics.participation = {.gini = 0.25, .jain = 0.5, .gap = 2};
  metrics.between_class_variance = 0.0625;
  metrics.within_class_variance = 1.5;
  metrics.labels = {.covered = 4, .divergence = 0.125, .variance = 9, .accuracy = 0.875};
  metrics.bits_per_byte = 2.25;
  metrics.group_bits_per_byte = 2.5;
  metrics.epsilon = 1.25;
  metrics.clipping_norm = 0.375;
  metrics.parameters_left_out = 40;
  metrics.ranks = {{.rank = 4, .accuracy = 0.625, .loss = 0.75, .bits_per_byte = 2.75}};
  return metrics;
}

const std::string kLine =
    R"({"round":3,"model_hash":"00ff)" + std::string(60, 'a') +
    R"(","test_accuracy":0.8125,"test_loss":0.5,"per_class_accuracy":[0.75,0.875],)"
    R"("train_loss":0.1,"clients_selected":12,"clients_completed":10,"bytes_up":7968400,)"
    R"("bytes_down":9562080,"virtual_seconds":37.5,"wall_seconds":0.75,)"
    R"("participation_gini":0.25,"participation_jain":0.5,"participation_gap":2,)"
    R"("between_class_variance":0.0625,"within_class_variance":1.5,"covered_labels":4.0,"covered_accuracy":0.875,)"
    R"("label_divergence":0.125,"label_variance":9.0,"bits_per_byte":2.25,"group_bits_per_byte":2.5,)"
    R"("epsilon":1.25,"clipping_norm":0.375,"parameters_left_out":40.0,)"
    R"("ranks":[{"rank":4,"accuracy":0.625,"loss":0.75,"bits_per_byte":2.75}]})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

using fedge::test::contains;

using fedge::test::count;

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const auto begin = text.find(open) + open.size();
  return text.substr(begin, text.find(close, begin) - begin);
}

}  // namespace

TEST_CASE("metrics: a round is one line of JSON and reads back as it was") {
  CHECK(to_json(one_round(3)) == kLine);
  const auto back = parse_metrics(kLine, "m");
  REQUIRE(back.has_value());
  CHECK(back->round == 3);
  CHECK(back->model_hash == one_round(3).model_hash);
  CHECK(back->train_loss == 0.1);
  CHECK(back->per_class_accuracy == std::vector<double>{0.75, 0.875});
  CHECK(back->bytes_down == 9562080);
  CHECK(to_json(*back) == kLine);
}

TEST_CASE("metrics: what was not measured, or has diverged, is null and an empty field") {
  RoundMetrics metrics = one_round(1);
  metrics.test_accuracy = kNotMeasured;
  metrics.per_class_accuracy = {};
  metrics.train_loss = std::numeric_limits<double>::infinity();
  metrics.between_class_variance = metrics.within_class_variance = kNotMeasured;
  metrics.labels = {};
  metrics.bits_per_byte = metrics.group_bits_per_byte = kNotMeasured;
  metrics.epsilon = metrics.clipping_norm = metrics.parameters_left_out = kNotMeasured;
  metrics.ranks = {};
  const std::string line = to_json(metrics);
  CHECK(contains(line, "\"test_accuracy\":null"));
  CHECK(contains(line, "\"per_class_accuracy\":[]"));
  CHECK(contains(line, "\"train_loss\":null"));
  const auto back = parse_metrics(line, "m");
  REQUIRE(back.has_value());
  CHECK(std::isnan(back->test_accuracy));
  CHECK(to_csv(metrics, {1, {}}) == "1,00ff" + std::string(60, 'a') +
                                        ",,0.5,,12,10,7968400,9562080,12.5,0.25,0.25,0.5,2,,,,,,,,,,,,\r\n");
}

TEST_CASE("metrics: a line that is no round is refused by what is wrong with it") {
  const auto refused = [](const std::string& line, const std::string& words) {
    const auto result = parse_metrics(line, "metrics.jsonl:7");
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::kCorrupt);
    CHECK_MESSAGE(contains(result.error().message, "metrics.jsonl:7: " + words), result.error().message);
  };
  refused("", "is not a round's JSON object");
  refused("[1]", "is not a round's JSON object");
  refused(kLine.substr(0, 100), "is not a round's JSON object");
  refused("{\"a\":" + std::string(100000, '['), "is not a round's JSON object");
  refused(replaced(kLine, "\"round\":3", "\"rnd\":3"), "round is missing");
  refused(replaced(kLine, "\"round\":3", "\"round\":-3"), "round is not a whole number");
  refused(replaced(kLine, "0.5,\"per", "\"low\",\"per"), "test_loss is not a number or null");
  refused(replaced(kLine, "[0.75,0.875]", "[0.75,true]"), "per_class_accuracy is not a number or null");
  refused(replaced(kLine, "[0.75,0.875]", "0.75"), "per_class_accuracy is not a list");
  refused(replaced(kLine, "[0.75,0.875]", "[[0.75]]"), "per_class_accuracy is not a number or null");
  refused(replaced(kLine, "[0.75,0.875]", "[[[[0.75]]]]"), "is not a round's JSON object");
  CHECK(parse_metrics(replaced(kLine, "{", "{\"another\":1.5,"), "m").has_value());
}

TEST_CASE("metrics: tracks are part of a round's line, and a table of their own") {
  RoundMetrics metrics = one_round(2);
  metrics.tracks.push_back({.track = {{"b", "c, d"}, {"a"}, 1, 3},
                            .model_hash = "12",
                            .test_accuracy = 0.5,
                            .test_loss = 1.5,
                            .clients_selected = 3,
                            .clients_completed = 2});
  const std::string line = to_json(metrics);
  const auto back = parse_metrics(line, "m");
  REQUIRE_MESSAGE(back, back.error().message);
  CHECK(to_json(*back) == line);
  REQUIRE(back->tracks.size() == 1);
  CHECK(back->tracks[0].track == metrics.tracks[0].track);
  CHECK(tracks_csv(std::vector<RoundMetrics>{metrics}) ==
        "round,exclude,owners,members,model_hash,test_accuracy,test_loss,train_loss,clients_selected,"
        "clients_completed\r\n2,\"b \"\"c, d\"\"\",1,3,12,0.5,1.5,,3,2\r\n");
  const auto refused = [&](const std::string& from, const std::string& to) {
    const auto result = parse_metrics(replaced(line, from, to), "m");
    REQUIRE_FALSE(result);
    return result.error().message;
  };
  CHECK(refused("[\"a\"]", "[1]") == "m: tracks: owners is not a list of texts");
  CHECK(refused("\"members\":3", "\"members\":-3") == "m: tracks: members is not a whole number");
  CHECK(refused("\"exclude\"", "\"x\"") == "m: tracks: exclude is missing");
}

TEST_CASE("metrics: whoever reads names apart by a character gets back those that were there") {
  using Names = std::vector<std::string>;
  // As RFC 4180 has fields of a line.
  const auto read = [](const std::string& text, char separator) {
    Names names;
    for (std::size_t i = 0; i < text.size();) {
      names.emplace_back();
      const bool in_marks = text[i] == '"';
      for (i += in_marks ? 1 : 0; i < text.size(); ++i) {
        if (in_marks && text[i] == '"' && (++i == text.size() || text[i] != '"')) break;
        if (!in_marks && text[i] == separator) break;
        names.back() += text[i];
      }
      if (i < text.size() && text[i] == separator && ++i == text.size()) names.emplace_back();
    }
    return names;
  };
  const Names hostile = {"plain",      "two words", "a,b", "\"",   "\"x\" y",
                         "say \"hi\"", " ",         ",",   "=1+1", "it's"};
  for (const char separator : {' ', ','}) {
    CHECK(read(joined_names(hostile, separator), separator) == hostile);
    for (const std::string& name : hostile)
      CHECK(read(joined_names(Names{name}, separator), separator) == Names{name});
  }
  CHECK(joined_names(Names{"0", "12"}, ' ') == "0 12");
  CHECK(joined_names(Names{}, ' ').empty());
  CHECK(joined_names(Names{"St. John's", "b"}, ' ') == "\"St. John's\" b");
}

TEST_CASE("metrics: a line of a version that did not know of participation is read") {
  const auto old = parse_metrics(kLine.substr(0, kLine.find(",\"participation_gini")) + "}", "m");
  REQUIRE(old);
  CHECK(std::isnan(old->participation.gini));
}

TEST_CASE("metrics: a file is read line by line, an unfinished last line is left out") {
  char pattern[] = "/tmp/fedge-report-XXXXXX";
  REQUIRE(::mkdtemp(pattern) != nullptr);
  const std::filesystem::path path = std::filesystem::path(pattern) / "metrics.jsonl";
  const auto write = [&](const std::string& text) { std::ofstream(path, std::ios::binary) << text; };
  write(kLine + "\n" + kLine + "\n" + kLine.substr(0, 50));
  const auto rounds = read_metrics(path);
  REQUIRE(rounds.has_value());
  CHECK(rounds->size() == 2);
  write(kLine + "\nnonsense\n" + kLine + "\n");
  CHECK(contains(read_metrics(path).error().message, "metrics.jsonl:2: "));
  std::filesystem::remove_all(pattern);
  CHECK(read_metrics(path).error().code == ErrorCode::kNotFound);
}

TEST_CASE("metrics: the table is RFC 4180") {
  CHECK(csv_header({2, {4}}) ==
        "round,model_hash,test_accuracy,test_loss,train_loss,clients_selected,clients_completed,"
        "bytes_up,bytes_down,virtual_seconds,wall_seconds,participation_gini,participation_jain,"
        "participation_gap,between_class_variance,within_class_variance,covered_labels,covered_accuracy,"
        "label_divergence,label_variance,bits_per_byte,group_bits_per_byte,epsilon,clipping_norm,parameters_"
        "left_out,rank_4_"
        "accuracy,rank_4_loss,"
        "rank_4_bits_per_byte,class_0_accuracy,class_1_accuracy\r\n");
  CHECK(to_csv(one_round(3), {2, {4}}) ==
        "3,00ff" + std::string(60, 'a') +
            ",0.8125,0.5,0.1,12,10,7968400,9562080,37.5,0.75,0.25,0.5,2,0.0625,1."
            "5,4,0.875,0.125,9,2.25,2.5,1.25,0.375,40,0.625,0.75,2.75,0.75,0.875\r\n");
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  RoundMetrics odd = one_round(1);
  odd.model_hash = "x,\"y\"";
  CHECK(to_csv(odd, {}).starts_with("1,\"x,\"\"y\"\"\",0.8125,"));
}

TEST_CASE("metrics: every figure, in JSON and in the tables, is explained in the reference") {
  std::ifstream file(FEDGE_SOURCE_DIR "/docs/reference/metrics.md");
  const std::string reference{std::istreambuf_iterator<char>(file), {}};
  RoundMetrics metrics = one_round(1);
  metrics.tracks.push_back({});
  const std::string line = to_json(metrics);
  std::set<std::string> names;
  for (std::size_t at = line.find("\":"); at != std::string::npos; at = line.find("\":", at + 1)) {
    const std::size_t begin = line.rfind('"', at - 1) + 1;
    names.insert(line.substr(begin, at - begin));
  }
  for (std::string table : {csv_header({1, {}}), tracks_csv(std::vector<RoundMetrics>{})}) {
    table.resize(table.size() - 2);
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = table.find(',', begin);
      names.insert(table.substr(begin, end == std::string::npos ? end : end - begin));
    }
  }
  CHECK(names.size() == 36);
  for (const std::string& name : names) CHECK_MESSAGE(contains(reference, "`" + name + "`"), name);
}

TEST_CASE("chart: ticks stand at round numbers inside the range") {
  CHECK(ticks(0, 100, 5, false) == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(ticks(1, 50, 6, true) == std::vector<double>{10, 20, 30, 40, 50});
  CHECK(ticks(1, 3, 6, true) == std::vector<double>{1, 2, 3});
  const auto small = ticks(0.31, 0.34, 5, false);
  REQUIRE(small.size() == 4);
  CHECK(small[0] == doctest::Approx(0.31));
  CHECK(small[3] == doctest::Approx(0.34));
  CHECK(ticks(5, 5, 5, false) == std::vector<double>{5});
  for (const double high : {1e-300, 1e-5, 3.7, 1e12, 1e300}) CHECK(ticks(0, high, 5, false).size() <= 6);
  CHECK(ticks(-1e308, 1e308, 5, false).size() <= 6);  // their difference is infinite
}

TEST_CASE("chart: values are shown with a fitting unit") {
  CHECK(with_unit(0.8125, Unit::kPercent) == "81.25 %");
  CHECK(with_unit(999, Unit::kBytes) == "999 B");
  CHECK(with_unit(7968400, Unit::kBytes) == "7.968 MB");
  CHECK(with_unit(0.05, Unit::kSeconds) == "50.00 ms");
  CHECK(with_unit(90, Unit::kSeconds) == "90.00 s");
  CHECK(with_unit(7200, Unit::kSeconds) == "2.000 h");
  CHECK(with_unit(0.4567, Unit::kNone) == "0.457");
  CHECK(with_unit(1e30, Unit::kNone) == "1e+30");
  CHECK(with_unit(kNotMeasured, Unit::kPercent) == "-");
}

TEST_CASE("chart: a line runs through the known points, in the picture's coordinates") {
  Chart chart{.title = "t",
              .x_title = "round",
              .y_unit = Unit::kPercent,
              .x = {1, 2, 3},
              .rounds = {1, 2, 3},
              .series = {}};
  chart.series = {{"a", {0.0, kNotMeasured, 1.0}}};
  const std::string svg = figure(chart);
  // Left edge and bottom to right edge and top; the middle point is not known and is passed over.
  CHECK(contains(svg, "<path class=\"l s1\" d=\"M46 192L424 10\"/>"));
  CHECK(contains(svg, "round 2 · -"));
  chart.series[0].y = {kNotMeasured, kNotMeasured, kNotMeasured};
  CHECK(figure(chart).empty());
}

TEST_CASE("chart: bars stack up from zero, and long runs are drawn as means of neighbours") {
  Chart chart{.title = "t",
              .x_title = "round",
              .y_unit = Unit::kCount,
              .from_zero = true,
              .bars = true,
              .x = {1, 2},
              .rounds = {1, 2},
              .series = {}};
  chart.series = {{"a", {6, 4}, 1}, {"b", {4, 6}, 2}};
  // The axis ends at 10, so that 182 picture units are 10: 6 reach up to 192 - 109.2.
  const std::string svg = figure(chart);
  CHECK(contains(svg, " 192V82.8h40V192z"));
  CHECK(contains(svg, " 82.8V10h40V82.8z"));
  for (std::uint64_t round = 3; round <= 1000; ++round) {
    chart.x.push_back(static_cast<double>(round));
    chart.rounds.push_back(round);
    for (auto& series : chart.series) series.y.push_back(5);
  }
  const std::string many = figure(chart);
  CHECK(contains(many, "t, mean of 5"));
  CHECK(count(many, "z") >= 400);
  CHECK(many.size() < 40000);
}

TEST_CASE("html: the page shows the run's figures") {
  ReportInfo info{"fashion-dirichlet", "[run]\nseed = 7\n", {"T-shirt/top"}, {{"mode", "abstract"}}};
  std::vector<RoundMetrics> rounds = {one_round(1), one_round(2)};
  rounds[0].test_accuracy = 0.91;
  const std::string page = report_html(info, rounds);
  for (const char* part :
       {"<title>fashion-dirichlet</title>", "81.25 %", "91.00 %", "20 of 24 client trainings", "35.1 MB",
        "15.9 MB up, 19.1 MB down", "25.0 s", "00ffaaaaaaaa", "T-shirt/top", "class 1", "seed = 7",
        "abstract", "Test accuracy", "Loss", "Participation", "Traffic per round", "Virtual time per round",
        "Wall time per round"}) {
    CHECK_MESSAGE(contains(page, part), part);
  }
  for (const char* tag : {"figure", "svg", "div", "main", "table", "tr", "p", "dl", "output", "span"}) {
    const std::string name = tag;
    CHECK_MESSAGE(
        count(page, "<" + name + ">") + count(page, "<" + name + " ") == count(page, "</" + name + ">"),
        name);
  }
}

TEST_CASE("html: a text's page shows its bits and its adapters' ranks, and no group that was not tested") {
  std::vector<RoundMetrics> rounds = {one_round(1), one_round(2)};
  rounds[1].per_class_accuracy = rounds[0].per_class_accuracy = {0.75, kNotMeasured};
  rounds[1].ranks = {{.rank = 4, .accuracy = 0.5, .loss = std::log(8.0), .bits_per_byte = 3.0},
                     {.rank = 8, .accuracy = 0.625, .loss = std::log(4.0), .bits_per_byte = 2.0}};
  const std::string page = report_html({"wordnet", "", {"noun.animal", "noun.motive"}, {}}, rounds);
  for (const char* part :
       {"Final bits a byte", "Bits a byte of text", "mean of its groups", "Ranks of the adapters",
        "Bits a byte by rank", "first ranks, round 2", "rank 4", "rank 8", "noun.animal",
        "Accuracy of each group", "<td>8</td><td>62.50 %</td><td>1.386</td><td>2.000</td><td>4.000</td>"}) {
    CHECK_MESSAGE(contains(page, part), part);
  }
  CHECK_FALSE(contains(page, "noun.motive"));
  CHECK(count(page, "<figure") == count(page, "</figure>"));
  rounds[0].bits_per_byte = rounds[1].bits_per_byte = kNotMeasured;
  rounds[0].ranks = rounds[1].ranks = {};
  rounds[0].group_bits_per_byte = rounds[1].group_bits_per_byte = kNotMeasured;
  const std::string other = report_html({"fashion", "", {"T-shirt/top"}, {}}, rounds);
  for (const char* part : {"bits a byte", "Ranks of the adapters", "Accuracy of each group"})
    CHECK_FALSE_MESSAGE(contains(other, part), part);
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
  for (const char* part : {"http:", "https:", "src=", "href=", "@import", "url(", "style=\"", "onload"}) {
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
  CHECK(hash_starts(between(page, "<style>", "</style>"), "style-src"));
  CHECK(hash_starts(between(page, "<script>", "</script>"), "script-src"));
}

TEST_CASE("html: diverged, unmeasured and absent rounds make a page without a broken number") {
  CHECK(contains(report_html({"run", "", {}, {}}, {}), "No round has been completed"));
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
