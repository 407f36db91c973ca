#include <doctest/doctest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "server/report/metrics.h"
#include "server/report/metrics_csv.h"
#include "tests/support/text.h"
#include "tests/unit/server/report/one_round.h"

using namespace fedge;
using namespace fedge::server;

namespace {

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

}  // namespace

TEST_CASE("metrics: a round is one line of JSON and reads back unchanged") {
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

TEST_CASE("metrics: a value that is unknown or not finite is null in JSON and empty in CSV") {
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
  CHECK(to_csv(metrics, {1, {}}, {"r", "fedavg", 7}) ==
        "1,00ff" + std::string(60, 'a') +
            ",,0.5,,12,10,7968400,9562080,12.5,0.25,0.25,0.5,2,,,,,,,,,,,,,r,fedavg,7\r\n");
}

TEST_CASE("metrics: a malformed line is refused, and the message says what is wrong") {
  const auto refused = [](const std::string& line, const std::string& words) {
    const auto result = parse_metrics(line, "metrics.jsonl:7");
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::kCorrupt);
    CHECK_MESSAGE(contains(result.error().message, "metrics.jsonl:7: " + words), result.error().message);
  };
  refused("", "is not the JSON object of a round");
  refused("[1]", "is not the JSON object of a round");
  refused(kLine.substr(0, 100), "is not the JSON object of a round");
  refused("{\"a\":" + std::string(100000, '['), "is not the JSON object of a round");
  refused(replaced(kLine, "\"round\":3", "\"rnd\":3"), "round is missing");
  refused(replaced(kLine, "\"round\":3", "\"round\":-3"), "round is not an integer of at least 0");
  refused(replaced(kLine, "0.5,\"per", "\"low\",\"per"), "test_loss is not a number or null");
  refused(replaced(kLine, "[0.75,0.875]", "[0.75,true]"), "per_class_accuracy is not a number or null");
  refused(replaced(kLine, "[0.75,0.875]", "0.75"), "per_class_accuracy is not a list");
  refused(replaced(kLine, "[0.75,0.875]", "[[0.75]]"), "per_class_accuracy is not a number or null");
  refused(replaced(kLine, "[0.75,0.875]", "[[[[[0.75]]]]]"), "is not the JSON object of a round");
  CHECK(parse_metrics(replaced(kLine, "{", "{\"another\":1.5,"), "m").has_value());
}

TEST_CASE("metrics: confusion matrices read back unchanged, and those that are not square are refused") {
  RoundMetrics metrics = one_round(3);
  metrics.test.confusion = {8, 2, 1, 9};
  metrics.evaluation.emplace().confusion = {5, 0, 0, 0, 6, 1, 0, 0, 7};
  const std::string line = to_json(metrics);
  CHECK(contains(line, R"("test_confusion":[8,2,1,9])"));
  CHECK(contains(line, R"("confusion":[5,0,0,0,6,1,0,0,7])"));
  const auto back = parse_metrics(line, "m");
  REQUIRE_MESSAGE(back, back.error().message);
  CHECK(back->test.confusion == metrics.test.confusion);
  CHECK(back->evaluation->confusion == metrics.evaluation->confusion);
  CHECK(to_json(*back) == line);
  for (const char* wrong : {"[8,2,1]", "[8,2,1,-9]", "[8,2,1,0.5]", "[[8,2],[1,9]]", "7"}) {
    const auto refused = parse_metrics(replaced(line, "[8,2,1,9]", wrong), "m");
    REQUIRE_FALSE(refused);
    CHECK(contains(refused.error().message, "test_confusion is not a list of the counts of a square matrix"));
  }
  CHECK_FALSE(parse_metrics(replaced(line, "[5,0,0,0,6,1,0,0,7]", "[5,0]"), "m"));
}

TEST_CASE("metrics: tracks are part of a round's line and have a table of their own") {
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
  CHECK(tracks_csv(std::vector<RoundMetrics>{metrics}, {"a, b", "fedavg", 7}) ==
        "round,exclude,owners,members,model_hash,test_accuracy,test_loss,train_loss,clients_selected,"
        "clients_completed,run,strategy,seed\r\n2,\"b \"\"c, d\"\"\",1,3,12,0.5,1.5,,3,2,\"a, "
        "b\",fedavg,7\r\n");
  const auto refused = [&](const std::string& from, const std::string& to) {
    const auto result = parse_metrics(replaced(line, from, to), "m");
    REQUIRE_FALSE(result);
    return result.error().message;
  };
  CHECK(refused("[\"a\"]", "[1]") == "m: tracks: owners is not a list of strings");
  CHECK(refused("\"members\":3", "\"members\":-3") == "m: tracks: members is not an integer of at least 0");
  CHECK(refused("\"exclude\"", "\"x\"") == "m: tracks: exclude is missing");
}

TEST_CASE("metrics: joined names can be split again, whatever characters they contain") {
  using Names = std::vector<std::string>;
  // Splits a line into fields by RFC 4180.
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

TEST_CASE("metrics: with tracks, the trainings of a round are the sum over its tracks") {
  RoundMetrics metrics = one_round(1);
  CHECK(trainings_selected(metrics) == 12);
  CHECK(trainings_completed(metrics) == 10);
  metrics.tracks = {{.clients_selected = 12, .clients_completed = 10},
                    {.clients_selected = 9, .clients_completed = 7}};
  CHECK(trainings_selected(metrics) == 21);
  CHECK(trainings_completed(metrics) == 17);
}

TEST_CASE("metrics: a line of an earlier version, without participation, is read") {
  const auto old = parse_metrics(kLine.substr(0, kLine.find(",\"participation_gini")) + "}", "m");
  REQUIRE(old);
  CHECK(std::isnan(old->participation.gini));
}

TEST_CASE("metrics: an unfinished last line of a file is ignored") {
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
        "rank_4_bits_per_byte,class_0_accuracy,class_1_accuracy,run,strategy,seed\r\n");
  CHECK(to_csv(one_round(3), {2, {4}}, {"r", "fedavg", 7}) ==
        "3,00ff" + std::string(60, 'a') +
            ",0.8125,0.5,0.1,12,10,7968400,9562080,37.5,0.75,0.25,0.5,2,0.0625,1."
            "5,4,0.875,0.125,9,2.25,2.5,1.25,0.375,40,0.625,0.75,2.75,0.75,0.875,r,fedavg,7\r\n");
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  RoundMetrics odd = one_round(1);
  odd.model_hash = "x,\"y\"";
  CHECK(to_csv(odd, {}, {}).starts_with("1,\"x,\"\"y\"\"\",0.8125,"));
}

TEST_CASE("metrics: the reference explains every metric of the JSON lines and tables") {
  std::ifstream file(FEDGE_SOURCE_DIR "/docs/reference/metrics.md");
  const std::string reference{std::istreambuf_iterator<char>(file), {}};
  RoundMetrics metrics = one_round(1);
  metrics.tracks.push_back({});
  metrics.test.rmse = 1;
  const std::string line = to_json(metrics);
  std::set<std::string> names;
  for (std::size_t at = line.find("\":"); at != std::string::npos; at = line.find("\":", at + 1)) {
    const std::size_t begin = line.rfind('"', at - 1) + 1;
    names.insert(line.substr(begin, at - begin));
  }
  for (std::string table :
       {csv_header({.classes = 1, .task = true}), tracks_csv(std::vector<RoundMetrics>{}, {})}) {
    table.resize(table.size() - 2);
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = table.find(',', begin);
      names.insert(table.substr(begin, end == std::string::npos ? end : end - begin));
    }
  }
  CHECK(names.size() == 50);
  for (const std::string& name : names) CHECK_MESSAGE(contains(reference, "`" + name + "`"), name);
}
