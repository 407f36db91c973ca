#include "run/recipe.h"

#include <doctest/doctest.h>

#include <string>

#include "core/config/document.h"
#include "tests/support/text.h"

namespace fedge::run {
namespace {

Result<RunConfig> read(const std::string& text) {
  FEDGE_TRY(document, config::parse_toml(text, "run.toml"));
  return read_run_config(document);
}

std::string refusal(const std::string& text) {
  const auto run = read(text);
  return run ? "accepted" : run.error().message;
}

using fedge::test::contains;

const std::string kClientNoise =
    "[differential_privacy]\nkind = \"local\"\nnoise_multiplier = 8.0\nclipping_norm = 1.0\n";

}  // namespace

TEST_CASE("recipe: what a strategy implies for clients stands in the text that they are sent") {
  const auto proximal = read("[strategy]\nkind = \"fedprox\"\n[training]\nobjective = { mu = 0.5 }\n");
  REQUIRE(proximal);
  CHECK(proximal->task.training.objective.kind == "proximal");
  CHECK(proximal->task.training.objective.mu == 0.5F);
  CHECK(contains(proximal->task_text, "proximal"));
  const auto nested =
      read("[strategy]\nkind = \"fjord\"\nplanner = { shares = [0.5, 1.0], fractions = [0.5, 0.5] }\n");
  REQUIRE(nested);
  CHECK(nested->task.training.local_model == LocalModel::kNested);
  CHECK(nested->task.training.widths == std::vector<double>{0.5, 1.0});
  CHECK(contains(nested->task_text, "nested"));
  const auto plain = read("[strategy]\nkind = \"fedavg\"\nplanner = { kind = \"heterofl\" }\n");
  REQUIRE(plain);
  CHECK(plain->task.training.local_model == LocalModel::kSlice);
  const auto scaffold = read("[strategy]\nkind = \"scaffold\"\n");
  REQUIRE(scaffold);
  CHECK(scaffold->control_variates);
}

TEST_CASE("recipe: a run without a server is described whole, and read again it is the same run") {
  const auto run = read(
      "[dissemination]\nkind = \"serverless\"\n[strategy]\nserver_optimizer = { learning_rate = 0.5 }\n");
  REQUIRE(run);
  CHECK(run->dissemination.swarm);
  CHECK(run->dissemination.serverless);
  CHECK(run->task_text == run->canonical);
  const auto again = read(run->task_text);
  REQUIRE(again);
  CHECK(again->canonical == run->canonical);
  CHECK(again->id == run->id);
  CHECK(!contains(read("[dissemination]\nkind = \"swarm\"\n")->task_text, "dissemination"));
}

TEST_CASE("recipe: what clients that come anew cannot know is refused where they aggregate themselves") {
  const std::string serverless = "[dissemination]\nkind = \"serverless\"\n";
  CHECK(refusal(serverless) == "accepted");
  CHECK(contains(refusal(serverless + "[strategy]\nschedule = { kind = \"buffered\" }\n"),
                 "schedule.kind = \"synchronous\""));
  CHECK(contains(refusal(serverless + "[strategy]\nkind = \"scaffold\"\n"),
                 "not possible with the objective \"scaffold\""));
  CHECK(contains(refusal(serverless + "[strategy]\nkind = \"fedadam\"\n"),
                 "the state of this server optimizer is not available"));
  CHECK(contains(refusal(serverless + "[strategy]\naggregator = { kind = \"median\" }\n"),
                 "use mean or uniform_mean"));
  const std::string warmup = serverless + "warmup = { scheduler = \"greedy_fastest_first\" }\n";
  CHECK(refusal(warmup) == "accepted");
  CHECK(contains(refusal(warmup + "[compression]\nzstd = true\n"), "set compression.zstd = false"));
  CHECK(contains(refusal(warmup + "[compression]\nkind = \"top_k\"\n"), "other than top_k and rand_k"));
  CHECK(
      contains(refusal(serverless + "[sampling]\nkind = \"optimal\"\n"), "saves uploads to the coordinator"));
  CHECK(refusal(serverless + "[sampling]\nkind = \"poisson\"\n") == "accepted");
  CHECK(contains(
      refusal(serverless + "[sampling]\nclients_per_round = 4097\n[data]\npartition = { clients = 5000 }\n"),
      "at most 4096"));
  CHECK(contains(refusal(serverless + "[tracks]\ndisagreement = [{ kind = \"inbound\", clients = [\"0\"], "
                                      "against = [\"1\"] }]\n"),
                 "receives the updates of all clients"));
}

TEST_CASE("recipe: a run without a server whose sampler weighs is refused, since clients cannot add zeros") {
  const std::string serverless = "[dissemination]\nkind = \"serverless\"\n[sampling]\n";
  for (const std::string kind : {"md", "poisson", "aw_psp"}) {
    CAPTURE(kind);
    const std::string weights = kind == "md" ? "" : "weights = \"ipw\"\n";
    CHECK(contains(refusal(serverless + "kind = \"" + kind + "\"\n" + weights),
                   "kind = \"serverless\": sampling.kind = \"" + kind +
                       "\" as configured counts a missing update as zeros"));
  }
}

TEST_CASE("recipe: what cannot work is refused with the reason") {
  const std::string scaffold = "[strategy]\nkind = \"scaffold\"\n";
  CHECK(contains(refusal(scaffold + "[training]\noptimizer = { momentum = 0.9 }\n"), "SGD without momentum"));
  CHECK(contains(refusal(scaffold + "[training]\noptimizer = { kind = \"adamw\" }\n"),
                 "SGD at a constant learning rate"));
  CHECK(contains(refusal(scaffold + "[training]\nschedule = { kind = \"cosine\" }\n"),
                 "SGD at a constant learning rate"));
  CHECK(contains(refusal(scaffold + "[model]\nadapter = { rank = 2 }\n"), "a model without adapters"));
  CHECK(contains(refusal(scaffold + "schedule = { kind = \"buffered\" }\n"), "synchronous"));
  CHECK(contains(refusal(scaffold + "planner = { kind = \"fedplt\" }\n"), "planner.kind = \"full\""));
  CHECK(contains(refusal(scaffold + "[sampling]\nkind = \"optimal\"\n"),
                 "the update of every selected client"));
  CHECK(contains(refusal("[training]\nobjective = { kind = \"scaffold\" }\n"), "uniform_mean"));
  CHECK(contains(refusal("[strategy]\nkind = \"fedplt\"\naggregator = { kind = \"median\" }\n"),
                 "requires updates of the whole model"));
  CHECK(contains(refusal("[strategy]\nkind = \"fednova\"\n[training]\noptimizer = { momentum = 0.5 }\n"
                         "objective = { kind = \"proximal\", mu = 1.0 }\n"),
                 "but not both"));
  CHECK(contains(refusal("[strategy]\nkind = \"krum\"\n[sampling]\nkind = \"optimal\"\n"),
                 "sets weights for a mean of the updates"));
  CHECK(contains(refusal("[strategy]\nkind = \"fedbuff\"\n[sampling]\nover_selection = 1.5\n"),
                 "which has no rounds"));
  CHECK(
      contains(refusal("[strategy]\nkind = \"fedbuff\"\n[sampling]\nkind = \"optimal\"\n"), "has no rounds"));
  const std::string few = refusal(
      "[sampling]\nclients_per_round = 6\n[strategy]\nkind = \"krum\"\n"
      "aggregator = { byzantine = 2 }\n");
  CHECK(contains(few, "at least 7 updates"));
  CHECK(contains(few, "clients_per_round is 6"));
  CHECK(contains(refusal("[strategy]\nkind = \"fedprox\"\n[training]\nobjective = { kind = \"plain\" }\n"),
                 "remove training.objective.kind"));
  CHECK(contains(refusal("[training]\nlocal_model = \"slice\"\n"), "remove training.local_model"));
  CHECK(contains(refusal(scaffold + "[training]\noptimizer = { learning_rate = 0 }\n"),
                 "learning_rate above 0"));
  const std::string fednova = "[strategy]\nkind = \"fednova\"\n";
  CHECK(contains(refusal(fednova + "[sampling]\nkind = \"optimal\"\n"), "local steps of every client"));
  CHECK(read(fednova + "[sampling]\nkind = \"optimal\"\nestimator = \"self_norm\"\n"));
  CHECK(contains(refusal(fednova + "[training]\noptimizer = { learning_rate = 0.5 }\n"
                                   "objective = { kind = \"proximal\", mu = 2.0 }\n"),
                 "objective.mu below 1"));
}

TEST_CASE("recipe: samplers that weigh updates or wait for all they drew go with a mean in rounds alone") {
  const std::string poisson = "[sampling]\nkind = \"poisson\"\n";
  const std::string inverse = poisson + "weights = \"ipw\"\n";
  const std::string md = "[sampling]\nkind = \"md\"\n";
  for (const std::string& sampling : {poisson, inverse, md}) CHECK(refusal(sampling) == "accepted");
  for (const std::string& sampling : {inverse, md}) {
    CHECK(contains(refusal(sampling + "[strategy]\nkind = \"krum\"\n"), "the aggregator krum is not a mean"));
    CHECK(contains(refusal(sampling + "[strategy]\nkind = \"fedbuff\"\n"), "has no rounds"));
    CHECK(contains(refusal(sampling + "[strategy]\nkind = \"scaffold\"\n"), "clients with equal weights"));
    CHECK(contains(refusal(sampling + "[strategy]\nkind = \"fednova\"\n"), "also sets weights"));
  }
  CHECK(refusal(poisson + "[strategy]\nkind = \"krum\"\n") == "accepted");
  CHECK(contains(refusal(poisson + "[strategy]\nkind = \"fedbuff\"\n"), "does not wait for it"));
  for (const char* kind : {"power_of_choice", "oort", "psp"})
    for (const char* strategy : {"krum", "fedbuff", "scaffold", "fednova"})
      CHECK(refusal(std::string("[sampling]\nkind = \"") + kind + "\"\n[strategy]\nkind = \"" + strategy +
                    "\"\n") == "accepted");
}

TEST_CASE("recipe: clients publish the labels that the sampler goes by, and no run asks for others") {
  const std::string sets = "[sampling]\nkind = \"aw_psp\"\nlabels = \"sets\"\n";
  const auto derived = read(sets);
  REQUIRE(derived);
  CHECK(derived->status.labels == protocol::LabelReport::kSets);
  CHECK(derived->status.every == seconds(10));
  CHECK(contains(derived->task_text, "labels = \"sets\""));
  CHECK(refusal(sets + "[status]\nlabels = \"sets\"\n") == "accepted");
  CHECK(refusal(sets + "[status]\nlabels = \"none\"\n") ==
        "run.toml:4: status: labels is \"none\", but sampling.labels is \"sets\"; both must be the same, so "
        "remove status.labels");
  CHECK(contains(refusal("[sampling]\nkind = \"aw_psp\"\n[status]\nlabels = \"dp_histogram\"\n"),
                 "labels is \"dp_histogram\", but sampling.labels is \"none\""));
  CHECK(
      refusal(sets + "[status]\nevery_seconds = 0\n") ==
      "run.toml:4: status: every_seconds is 0, so clients publish nothing, but sampling.labels is \"sets\"");
  CHECK(refusal("[sampling]\nkind = \"aw_psp\"\n[status]\nevery_seconds = 0\n") == "accepted");
  CHECK(refusal("[status]\nevery_seconds = 5\nlabels = \"sets\"\n") == "accepted");
  // Directory nodes would keep hundreds of a client's records if they were too short-lived, and refuse
  // records that live too long.
  for (const char* seconds : {"0.5", "28801"})
    CHECK(refusal("[status]\nvia = \"directory\"\nevery_seconds = " + std::string(seconds) + "\n")
              .find("every_seconds: must be 1 to 28800") != std::string::npos);
  CHECK(refusal("[status]\nvia = \"directory\"\nevery_seconds = 28800\n") == "accepted");
  CHECK(refusal("[status]\nvia = \"link\"\nevery_seconds = 0.5\n") == "accepted");
}

TEST_CASE("recipe: a sampler that goes by who is there is refused where a barrier keeps clients waiting") {
  const auto run = [](const std::string& sampler, const std::string& barrier) {
    return refusal("[sampling]\nkind = \"" + sampler +
                   "\"\n[strategy]\nkind = \"fedbuff\"\nschedule = { barrier = \"" + barrier + "\" }\n");
  };
  CHECK(run("uniform", "bsp") == "accepted");
  CHECK(run("aw_psp", "asp") == "accepted");
  CHECK(contains(run("aw_psp", "pssp"),
                 "kind = \"aw_psp\" would count a client that waits at strategy.schedule.barrier"));
  CHECK(contains(run("availability", "bsp"), "kind = \"availability\" would count a client that waits"));
}

TEST_CASE(
    "recipe: statistics of the clients' data are refused where they cannot be, or would not be protected") {
  const auto own = [](const std::string& data, const std::string& more = "") {
    return refusal(
        "[data]\ndataset = \"csv\"\nname = \"mine\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\", "
        "\"1\"]\n"
        "partition = { kind = \"own\", clients = 4 }\n" +
        data + "[sampling]\nclients_per_round = 4\n[model]\nkind = \"softmax\"\n" + more);
  };
  const std::string federated = "normalise = \"federated\"\n";
  CHECK(own(federated) == "accepted");
  CHECK(own(federated, "[secure_aggregation]\nkind = \"exact\"\n") == "accepted");
  CHECK(contains(own(federated + "mean = [1]\n"), "has no effect with normalise = \"federated\""));
  CHECK(contains(own(federated, "[strategy]\nkind = \"fedbuff\"\n"), "because it has no rounds"));
  CHECK(contains(own(federated, "[dissemination]\nkind = \"serverless\"\n"),
                 "exchange models without the coordinator"));
  CHECK(contains(own(federated, kClientNoise), "but not to statistics; set data.mean and data.deviation"));
  CHECK(contains(
      own(federated,
          "[tracks]\ndisagreement = [{ kind = \"inbound\", clients = [\"1\"], against = [\"2\"] }]\n"),
      "would share the statistics"));
  CHECK(contains(refusal("[data]\nnormalise = \"federated\"\n"), "not files of the user"));
}

TEST_CASE("recipe: damping is refused where a round's weights are corrected, replaced or unknown") {
  const auto damped = [](const std::string& planner, const std::string& more) {
    return refusal("[strategy]\nkind = \"fedplt\"\nplanner = { rotate = true" + planner +
                   " }\naggregator = { damping = 0.5 }\n" + more);
  };
  const std::string key = "strategy.aggregator.damping: ";
  CHECK(damped("", "") == "accepted");
  for (const char* kind : {"optimal", "md"}) {
    const std::string message = damped("", "[sampling]\nkind = \"" + std::string(kind) + "\"\n");
    CHECK(contains(message, key));
    CHECK(contains(message, "sampling.kind = \"" + std::string(kind) + "\" as configured corrects the mean"));
  }
  CHECK(damped("", "[sampling]\nkind = \"optimal\"\nestimator = \"self_norm\"\n") == "accepted");
  const std::string uniform = "[strategy]\naggregator = { kind = \"uniform_mean\", damping = 0.5 }\n";
  const std::string privacy = "[differential_privacy]\nnoise_multiplier = 1\n";
  const std::string refused = refusal(uniform + privacy + "kind = \"central\"\n");
  CHECK(contains(refused, key));
  CHECK(contains(refused, "differential_privacy.kind"));
  CHECK(refusal(uniform + privacy + "kind = \"local\"\nmax_participations = 100\n") == "accepted");
  const std::string secure = "[secure_aggregation]\nkind = \"exact\"\n";
  CHECK(damped("", secure) == "accepted");
  const std::string unknown = damped(", split_output = true", secure);
  CHECK(contains(unknown, key));
  CHECK(contains(unknown, "set strategy.planner.split_output = false"));
  CHECK(damped(", split_output = true", "") == "accepted");
}

TEST_CASE("recipe: what cannot work with AdamW or with adapters is refused before a run begins") {
  const std::string nova = "[strategy]\nkind = \"fednova\"\n";
  CHECK(contains(refusal(nova + "[training]\noptimizer = { kind = \"adamw\" }\n"),
                 "requires SGD at a constant learning rate"));
  CHECK(contains(refusal(nova + "[training]\nschedule = { kind = \"cosine\" }\n"),
                 "requires SGD at a constant learning rate"));
  CHECK(contains(refusal("[strategy]\nkind = \"median\"\n[model]\nadapter = { rank = 2 }\n"),
                 "the aggregator median requires updates of the whole model"));
  CHECK(contains(refusal("[strategy]\nkind = \"prelort\"\n"), "set model.adapter.rank"));
  const std::string prelort = "[model]\nadapter = { rank = 32 }\n[strategy]\nkind = \"prelort\"\n";
  CHECK(contains(refusal(prelort + "[training]\nnesting = \"none\"\n"), "requires nested training"));
  const std::string flexlora = "[model]\nadapter = { rank = 32 }\n[strategy]\nkind = \"flexlora\"\n";
  CHECK(contains(refusal(flexlora + "server_optimizer = { kind = \"adam\" }\n"),
                 "the server optimizer sgd with learning_rate = 1"));
  CHECK(contains(refusal(flexlora + "schedule = { kind = \"buffered\" }\n"),
                 "requires schedule.kind = \"synchronous\""));
  CHECK(
      contains(refusal(flexlora + "server_optimizer = { learning_rate = 0.5 }\n"), "with learning_rate = 1"));
  CHECK(contains(refusal("[model]\nadapter = { rank = 32 }\n[strategy]\nkind = \"fedit\"\n"
                         "planner = { kind = \"rank_prefix_b\" }\naggregator = { kind = \"flexlora\" }\n"),
                 "send only factor B"));
  CHECK(contains(refusal(flexlora + "[compression]\nkind = \"top_k\"\n"), "computes new factors"));
  CHECK(refusal(flexlora + "[compression]\nkind = \"top_k\"\nerror_feedback = false\n") == "accepted");
  CHECK(contains(refusal("[strategy]\nkind = \"fjord\"\n[training]\noptimizer = { kind = \"adamw\" }\n"),
                 "counts every step for every parameter"));
  const std::string compact = "[model]\nadapter = { rank = 32 }\nbase_dtype = \"int8\"\n[strategy]\nkind = ";
  CHECK(refusal(compact + "\"flexlora\"\n") == "accepted");
  CHECK(contains(refusal(compact + "\"flora\"\n"), "flora adds to the frozen weights in every round"));
  CHECK(contains(refusal("[model]\nbase_dtype = \"int8\"\n"), "has no effect without adapters"));
}

TEST_CASE("recipe: a barrier's numbers without a barrier that reads them are refused") {
  const auto buffered = [](const std::string& barrier) {
    return refusal("[strategy]\nkind = \"fedbuff\"\nschedule = { " + barrier + " }\n");
  };
  CHECK(buffered("barrier = \"pssp\", barrier_sample = 3, barrier_staleness = 2") == "accepted");
  CHECK(buffered("barrier = \"ssp\", barrier_staleness = 0") == "accepted");
  CHECK(contains(buffered("barrier_sample = 3"), "has no effect with barrier = \"asp\""));
  CHECK(contains(buffered("barrier = \"ssp\", barrier_sample = 3"), "no effect with barrier = \"ssp\""));
  CHECK(contains(buffered("barrier = \"pbsp\", barrier_staleness = 3"), "no effect with barrier = \"pbsp\""));
  CHECK(contains(buffered("barrier = \"pbsp\", barrier_sample = 0"), "barrier_sample"));
  CHECK(contains(refusal("[strategy]\nschedule = { barrier = \"bsp\" }\n"), "barrier"));
}

TEST_CASE(
    "recipe: feddyn has a part on the clients and one on the coordinator, of whole updates that count "
    "alike") {
  const std::string feddyn = "[strategy]\nkind = \"feddyn\"\n";
  const auto run = read(feddyn + "[training]\nobjective = { alpha = 0.5 }\n");
  REQUIRE(run);
  CHECK(run->task.training.objective.kind == "dynamic");
  CHECK(run->task.training.objective.alpha == 0.5F);
  CHECK(run->strategy.aggregator_kind == "uniform_mean");
  CHECK(run->strategy.sums_clients);
  CHECK(!run->control_variates);
  CHECK(refusal(feddyn + "[training]\noptimizer = { kind = \"adamw\" }\n") == "accepted");
  CHECK(refusal(feddyn + "[secure_aggregation]\nkind = \"exact\"\n") == "accepted");
  CHECK(contains(refusal("[training]\nobjective = { kind = \"dynamic\" }\n"),
                 "use strategy.kind = \"feddyn\""));
  CHECK(contains(refusal("[strategy]\nserver_optimizer = { kind = \"dynamic\" }\n"),
                 "use strategy.kind = \"feddyn\""));
  CHECK(contains(refusal(feddyn + "aggregator = { kind = \"median\" }\n"), "requires \"uniform_mean\""));
  CHECK(contains(refusal("[strategy]\nserver_optimizer = { kind = \"dynamic\" }\n"
                         "[training]\nobjective = { kind = \"dynamic\" }\n"),
                 "feddyn requires the aggregator uniform_mean"));
  CHECK(
      contains(refusal(feddyn + "schedule = { kind = \"buffered\" }\n"), "every update must count in full"));
  CHECK(contains(refusal(feddyn + "planner = { kind = \"fedplt\" }\n"), "planner.kind = \"full\""));
  CHECK(contains(refusal(feddyn + "[model]\nadapter = { rank = 2 }\n"), "a model without adapters"));
  CHECK(
      contains(refusal(feddyn + "[sampling]\nkind = \"optimal\"\n"), "the update of every selected client"));
  CHECK(contains(refusal(feddyn + "[training]\npersonal = { kind = \"ditto\" }\n"),
                 "keep nothing else beside them"));
  CHECK(contains(refusal(feddyn + "[dissemination]\nkind = \"serverless\"\n"),
                 "not possible with the objective \"dynamic\""));
  CHECK(contains(refusal(feddyn + kClientNoise), "adds the noise of all earlier rounds"));
}

TEST_CASE("recipe: moon compares whole models that a client keeps") {
  const std::string moon = "[strategy]\nkind = \"moon\"\n";
  const auto run = read(moon + "[training]\nobjective = { mu = 5, temperature = 0.2 }\n");
  REQUIRE(run);
  CHECK(run->task.training.objective.kind == "contrastive");
  CHECK(run->task.training.objective.mu == 5.0F);
  CHECK(run->task.training.objective.temperature == 0.2F);
  CHECK(contains(refusal(moon + "planner = { kind = \"heterofl\" }\n"), "compares whole models"));
  CHECK(contains(refusal(moon + "[model]\nadapter = { rank = 2 }\n"), "a model without adapters"));
  CHECK(contains(refusal(moon + "[training]\npersonal = { kind = \"ditto\" }\n"),
                 "keep nothing else beside them"));
  CHECK(contains(refusal(moon + "[dissemination]\nkind = \"serverless\"\n"),
                 "not possible with the objective \"contrastive\""));
}

TEST_CASE("recipe: qfedavg needs the loss before training, of single clients in the clear") {
  const std::string qfedavg = "[strategy]\nkind = \"qfedavg\"\n";
  const auto run = read(qfedavg);
  REQUIRE(run);
  CHECK(run->task.training.start_loss);
  CHECK(contains(run->task_text, "start_loss"));
  CHECK(!read("[strategy]\nkind = \"fedavg\"\n")->task.training.start_loss);
  CHECK(contains(refusal(qfedavg + "[training]\nstart_loss = false\n"), "remove training.start_loss"));
  CHECK(contains(refusal(qfedavg + "[secure_aggregation]\nkind = \"exact\"\n"), "needs single updates"));
  CHECK(contains(refusal(qfedavg + kClientNoise), "does not cover the losses"));
  CHECK(contains(refusal(qfedavg + "[dissemination]\nkind = \"serverless\"\n"),
                 "is not a mean of the updates"));
  CHECK(contains(refusal(qfedavg + "planner = { kind = \"fedplt\" }\n"),
                 "requires updates of the whole model"));
}

TEST_CASE(
    "recipe: training for the next round is refused where a client could not stand in for the aggregate") {
  const std::string overlaps = "[strategy]\nkind = \"parablock\"\n";
  const auto run = read(overlaps);
  REQUIRE(run);
  CHECK(run->task.training.overlap == learn::OverlapKind::kLocal);
  CHECK(run->task.training.local_model == LocalModel::kBlock);
  CHECK(run->chunk_size == 32 << 10);
  CHECK(contains(run->task_text, "overlap = \"local\""));
  CHECK(read(overlaps + "[run]\nchunk_size = 8192\n")->chunk_size == 8192);
  CHECK(refusal(overlaps + "[training]\noverlap = \"stale\"\n") == "accepted");
  CHECK(contains(refusal("[training]\noverlap = \"local\"\n"), "needs clients that all train the same part"));
  const auto refused = [&](const std::string& more, const std::string& why) {
    CAPTURE(more);
    CHECK(contains(refusal(overlaps + more), why));
  };
  refused("[training]\noverlap = \"none\"\n", "use \"block_coordinate\"");
  refused("schedule = { kind = \"buffered\" }\n",
          "needs rounds, because a client stands in for the aggregate");
  refused("planner = { kind = \"fedplt\" }\n", "requires \"block\"");
  refused("[training]\npartial_work = 0.5\n", "needs complete training");
  refused("[differential_privacy]\nkind = \"central\"\nnoise_multiplier = 8.0\nclipping_norm = 1.0\n",
          "the noise on the sums moves all of them");
  refused("[dissemination]\nkind = \"serverless\"\n", "which of a client's updates counted");
  refused("[[tracks.disagreement]]\nkind = \"inbound\"\nclients = [\"1\"]\nagainst = [\"2\"]\n", "tracks");
  CHECK(contains(refusal("[strategy]\nkind = \"fedplt\"\n[training]\noverlap = \"local\"\n"),
                 "needs clients that all train the same part"));
  CHECK(contains(refusal("[training]\noverlap = \"local\"\nobjective = { kind = \"scaffold\" }\n"
                         "[strategy]\naggregator = { kind = \"uniform_mean\" }\n"),
                 "which keeps a state of its own"));
}

TEST_CASE("recipe: blocks by importance need norms that the coordinator sees") {
  const std::string importance =
      "[strategy]\nkind = \"block_coordinate\"\nplanner = { schedule = \"importance\" }\n";
  CHECK(refusal(importance) == "accepted");
  CHECK(contains(refusal(importance + "[secure_aggregation]\nkind = \"exact\"\n"), "which masks hide"));
  CHECK(contains(refusal(importance + "[strategy.schedule]\nkind = \"buffered\"\n"), "needs rounds"));
  CHECK(contains(refusal(importance + "[dissemination]\nkind = \"serverless\"\n"),
                 "which the coordinator of a serverless run does not see"));
}

}  // namespace fedge::run
