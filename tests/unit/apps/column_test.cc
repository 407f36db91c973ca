// Columns of tables of runs: the value that each text selects, worked out by hand.
#include "apps/simulation/results/column.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::apps;
using fedge::test::contains;

namespace {

// Accuracies 0.5, -, 0.7, 0.6, 0.8 in five rounds of 10 s, each with an upload of 2 MB by 3 clients.
FinishedRun five_rounds() {
  FinishedRun run{.name = "five", .seed = 1};
  const double accuracies[] = {0.5, server::kNotMeasured, 0.7, 0.6, 0.8};
  for (std::size_t i = 0; i < 5; ++i) {
    server::RoundMetrics round{.round = i + 1};
    round.test_accuracy = accuracies[i];
    round.bytes_up = 2'000'000;
    round.bytes_down = 1'000'000 * (i + 1);
    round.clients_completed = 3;
    round.virtual_seconds = 10 * static_cast<double>(i + 1);
    round.ranks = {{.rank = 4, .accuracy = 0.1 * static_cast<double>(i)}};
    run.rounds.push_back(round);
  }
  return run;
}

double value(const std::string& text, const FinishedRun& run = five_rounds()) {
  const auto column = parse_column(text);
  REQUIRE_MESSAGE(column, column.error().message);
  return column->value(run);
}

std::string title(const std::string& text) {
  const auto column = parse_column(text);
  REQUIRE_MESSAGE(column, column.error().message);
  return column->title;
}

std::string column_refusal(const std::string& text) {
  const auto column = parse_column(text);
  REQUIRE_FALSE(column);
  return column.error().message;
}

}  // namespace

TEST_CASE("columns: bytes and correlation of activations, of runs that have them") {
  CHECK(title("sum:activation_bytes_up") == "activations, MB");
  CHECK(std::isnan(value("sum:activation_bytes_up")));
  FinishedRun run = five_rounds();
  for (server::RoundMetrics& round : run.rounds) {
    round.activation_bytes_up = 3'000'000;
    round.activation_bytes_down = 2'500'000;
    round.activation_correlation = 0.1 * static_cast<double>(round.round);
  }
  const auto column = parse_column("sum:activation_bytes_down");
  REQUIRE(column);
  CHECK(column->shown(column->value(run)) == "12.5");
  CHECK(value("max:activation_correlation", run) == doctest::Approx(0.5));
}

TEST_CASE("columns: final, best and other reductions of a metric ignore rounds without it") {
  CHECK(value("final") == doctest::Approx((0.7 + 0.6 + 0.8) / 3));
  CHECK(value("final:test_accuracy") == value("final"));
  CHECK(value("test_accuracy") == value("final"));
  CHECK(value("best") == 0.8);
  CHECK(value("last:accuracy") == 0.8);
  CHECK(value("last2:accuracy") == doctest::Approx(0.7));
  CHECK(value("last100:accuracy") == doctest::Approx(0.65));
  CHECK(value("mean:accuracy") == doctest::Approx(0.65));
  CHECK(value("min:accuracy") == 0.5);
  CHECK(value("upload") == 1e7);
  CHECK(value("download") == 1.5e7);
  CHECK(value("seconds") == 50);
  CHECK(value("last:rank_4_accuracy") == doctest::Approx(0.4));
  CHECK(std::isnan(value("last:epsilon")));
  CHECK(std::isnan(value("last:class_3_accuracy")));
}

TEST_CASE("columns: what a run needs to reach an accuracy counts the round that reaches it") {
  CHECK(value("rounds_to:0.7") == 3);
  CHECK(value("seconds_to:0.7") == 30);
  CHECK(value("updates_to:0.7") == 9);
  CHECK(value("upload_to:0.7") == 6e6);
  CHECK(std::isnan(value("rounds_to:0.81")));
}

TEST_CASE("columns: the accuracy at a budget is the best before the uploads exceed it") {
  CHECK(value("accuracy_at:6") == 0.7);
  CHECK(value("accuracy_at:5.9") == 0.5);
  CHECK(value("accuracy_at:100") == 0.8);
  CHECK(std::isnan(value("accuracy_at:1")));
}

TEST_CASE("columns: a failed run has no final value, but sums and a best value") {
  FinishedRun failed = five_rounds();
  failed.failure = "the loss is not finite";
  CHECK(std::isnan(value("final", failed)));
  CHECK(std::isnan(value("last3:accuracy", failed)));
  CHECK(value("best", failed) == 0.8);
  CHECK(value("upload", failed) == 1e7);
}

TEST_CASE("columns: titles have the unit of the values that are shown") {
  CHECK(title("final") == "final accuracy, %");
  CHECK(title("best") == "best accuracy, %");
  CHECK(title("upload") == "upload, MB");
  CHECK(title("seconds") == "virtual time, s");
  CHECK(title("rounds_to:0.75") == "rounds to 75 %");
  CHECK(title("upload_to:0.75") == "upload to 75 %, MB");
  CHECK(title("accuracy_at:10") == "accuracy at 10 MB upload, %");
  CHECK(title("last10:covered_accuracy") == "last 10 covered accuracy, %");
  CHECK(title("relative:upload") == "upload, % of the baseline");
  CHECK(title("bits_per_byte") == "final bits per byte");
  CHECK(parse_column("upload")->shown(1.25e7) == "12.5");
  CHECK(parse_column("final")->shown(0.8197) == "81.97");
  CHECK(parse_column("final")->shown(0.01, true) == "+1.00");
  CHECK(parse_column("final")->shown(-0.00001, true) == "+0.00");
  CHECK(parse_column("final")->shown(server::kNotMeasured) == "-");
}

TEST_CASE("columns: which values are better, for the choice of tuned settings") {
  for (const char* text :
       {"final", "best", "test_auroc", "last:test_macro_f1", "test_r2", "test_mean_iou", "covered_labels",
        "participation_jain", "evaluation_accuracy_worst_tenth", "last:rank_4_accuracy", "accuracy_at:10"})
    CHECK_MESSAGE(parse_column(text)->higher_is_better, text);
  for (const char* text : {"bits_per_byte", "test_loss", "rmse", "test_mae", "participation_gini", "epsilon",
                           "rounds_to:0.5", "upload", "test_auroc_error"})
    CHECK_MESSAGE(!parse_column(text)->higher_is_better, text);
}

TEST_CASE("columns: a text that names no column is refused with what would be right") {
  CHECK(column_refusal("last:test_acuracy") ==
        "column 'last:test_acuracy': 'test_acuracy' is no metric of a round; did you mean 'test_accuracy'?");
  CHECK(contains(column_refusal("median:accuracy"), "'median' is none of final, last, last2"));
  CHECK(contains(column_refusal("last0:accuracy"), "'last0' is none of"));
  CHECK(contains(column_refusal("rounds_to:75"), "'75' is no accuracy from 0 to 1"));
  CHECK(contains(column_refusal("accuracy_at:-1"), "'-1' is no number of megabytes"));
  CHECK(contains(column_refusal(""), "'' is no metric of a round"));
}
