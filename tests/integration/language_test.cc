// Language models as a user runs them: a base is trained centrally, devices of different ranks fine-tune it
// together, and it generates text before and after.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"
#include "tests/unit/learn/text/long_tokenizer.h"

using namespace fedge;
using learn::test::TemporaryDirectory;
using test::Outcome;
using test::run;

namespace {

// Three authors, each with sentences of different words.
void write_texts(const TemporaryDirectory& directory) {
  const std::vector<std::vector<std::string>> words = {{"the", "sea", "rolls", "grey", "and", "cold"},
                                                       {"a", "bird", "sings", "in", "green", "leaves"},
                                                       {"one", "wheel", "turns", "slow", "under", "load"}};
  for (std::size_t author = 0; author < words.size(); ++author) {
    std::string text;
    for (std::size_t i = 0; text.size() < 24'000; ++i) {
      text += words[author][(i * i + i / 7 + author) % 6];
      text += i % 6 == 5 ? ".\n" : " ";
    }
    directory.write("author" + std::to_string(author) + ".txt", {text.begin(), text.end()});
  }
}

struct Setup {
  TemporaryDirectory texts;
  TemporaryDirectory out;
  std::string base = (out.path() / "base.safetensors").string();
  std::string model = " --set model.layers=1 --set model.width=16 --set model.heads=2 --set data.context=16";
  std::string data;

  Setup() {
    write_texts(texts);
    data = " --set data.dataset=text --set data.directory=" + texts.path().string();
  }
  Outcome pretrain(const std::string& more = "") const {
    return run("fedge-sim pretrain " FEDGE_SOURCE_DIR "/examples/language/base.toml --out " + base + data +
               model + " --set training.local_steps=40" + more);
  }
  Outcome tune(const std::string& name, const std::string& more) const {
    return run("fedge-sim run " FEDGE_SOURCE_DIR "/examples/language/wordnet.toml --out " +
               (out.path() / name).string() + data + model + " --set model.base=" + base +
               " --set model.adapter.rank=4 --set strategy.planner.ranks=[1,2,4]"
               " --set data.partition.clients=3 --set sampling.clients_per_round=2 --set run.rounds=3"
               " --set run.evaluate_every=1 --set run.chunk_size=4096 --set training.local_steps=2" +
               more);
  }
  std::vector<server::RoundMetrics> rounds(const std::string& name) const {
    const auto read = server::read_metrics(out.path() / name / "metrics.jsonl");
    REQUIRE(read);
    return *read;
  }
  std::string generate(const std::string& file, const std::string& more) const {
    const Outcome outcome = run("fedge model generate " + file + " --prompt 'the ' --tokens 40" + more);
    CHECK_MESSAGE(outcome.code == 0, outcome.output);
    return outcome.output;
  }
};

using fedge::test::contains;

}  // namespace

TEST_CASE(
    "language: a base is fine-tuned by adapters over sockets as in virtual time, whatever the strategy") {
  const Setup setup;
  const Outcome trained = setup.pretrain();
  REQUIRE_MESSAGE(trained.code == 0, trained.output);
  CHECK(contains(trained.output, "bits per byte"));
  std::string more;
  SUBCASE("prelort") { more = ""; }
  SUBCASE("one rank") { more = " --set strategy={kind=\\\"fedit\\\"}"; }
  SUBCASE("pruned") { more = " --set strategy.kind=hetlora --set training.objective.lambda=5"; }
  SUBCASE("products that join the weights") { more = " --set strategy.kind=flora"; }
  SUBCASE("factors B alone") { more = " --set strategy.kind=ffa_lora"; }
  SUBCASE("a base of 16 bits") { more = " --set model.base_dtype=bfloat16"; }
  SUBCASE("a base of 8 bits") { more = " --set model.base_dtype=int8"; }
  for (const char* mode : {"abstract", "concrete"}) {
    const Outcome outcome = setup.tune(mode, more + " --mode " + mode);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  }
  const auto abstract = setup.rounds("abstract");
  const auto concrete = setup.rounds("concrete");
  REQUIRE(abstract.size() == 3);
  REQUIRE(concrete.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(concrete[i].model_hash == abstract[i].model_hash);
    CHECK(concrete[i].bits_per_byte == abstract[i].bits_per_byte);
    CHECK(concrete[i].bytes_up == abstract[i].bytes_up);
    CHECK(abstract[i].bits_per_byte > 0);
  }
  // In round 1, clients hold no chunks yet. Traffic other than chunks differs slightly between the modes.
  CHECK(static_cast<double>(concrete[2].bytes_down) ==
        doctest::Approx(static_cast<double>(abstract[2].bytes_down)).epsilon(0.02));
  if (more.empty()) REQUIRE(abstract[2].ranks.size() == 3);
  // A run's files name its base by content, and `data ls` works without the base.
  std::filesystem::remove(setup.base);
  const std::string left = (setup.out.path() / "abstract" / "run.toml").string();
  CHECK(run("fedge data ls " + left).code == 0);
  CHECK(contains(run("fedge-sim run " + left + " --out " + (setup.out.path() / "again").string()).output,
                 "model.base: cannot open"));
  // A device with the frozen weights does not fetch them again; flora changes them.
  if (!contains(more, "flora")) CHECK(abstract[2].bytes_down < abstract[0].bytes_down / 2);
}

TEST_CASE("language: clients that prune themselves send less from then on") {
  const Setup setup;
  REQUIRE(setup.pretrain().code == 0);
  const auto sent = [&](const std::string& kind, const std::string& more) {
    REQUIRE(setup.tune(kind, " --set run.rounds=6 --set strategy.kind=" + kind + more).code == 0);
    std::uint64_t bytes = 0;
    for (const server::RoundMetrics& round : setup.rounds(kind)) bytes += round.bytes_up;
    return bytes;
  };
  CHECK(sent("hetlora", " --set training.objective.lambda=5") < sent("zero_pad", ""));
}

TEST_CASE(
    "language: a model writes the same text for the same seed, another after fine-tuning, merged or not") {
  const Setup setup;
  // Enough steps to learn words of its own.
  REQUIRE(
      setup.pretrain(" --set training.local_steps=400 --set training.optimizer.learning_rate=0.01").code ==
      0);
  REQUIRE(setup.tune("tuned", " --set training.optimizer.learning_rate=0.05").code == 0);
  const std::string tuned = (setup.out.path() / "tuned" / "model.safetensors").string();
  const std::string merged = (setup.out.path() / "merged.safetensors").string();
  const std::string lora = (setup.out.path() / "lora.safetensors").string();
  const std::string before = setup.generate(setup.base, "");
  CHECK(before.starts_with("the "));
  CHECK(before.size() == 4 + 40 + 1);
  CHECK(setup.generate(setup.base, "") == before);
  CHECK(setup.generate(setup.base, " --seed 2") != before);
  CHECK(setup.generate(tuned, " --temperature 0") != setup.generate(setup.base, " --temperature 0"));
  CHECK(setup.generate(tuned, " --temperature 0 --ranks 0") ==
        setup.generate(setup.base, " --temperature 0"));
  REQUIRE(run("fedge model merge " + tuned + " --out " + merged).code == 0);
  CHECK(setup.generate(merged, " --temperature 0") == setup.generate(tuned, " --temperature 0"));
  REQUIRE(setup.tune("compact", " --set model.base_dtype=int8").code == 0);
  const std::string compact = (setup.out.path() / "compact" / "model.safetensors").string();
  REQUIRE(run("fedge model merge " + compact + " --force --out " + merged).code == 0);
  CHECK(setup.generate(merged, " --temperature 0") == setup.generate(compact, " --temperature 0"));
  CHECK(contains(run("fedge model adapters " + tuned + " --ranks 2 --out " + lora).output,
                 "6 adapters of rank 2, lora_alpha 4.0"));
  CHECK(contains(run("fedge model info " + tuned).output, "adapters of rank 4 on 6 matrices"));
}

TEST_CASE("language: a model's file is evaluated as its run evaluated it, at every number of ranks") {
  const Setup setup;
  REQUIRE(setup.pretrain().code == 0);
  REQUIRE(setup.tune("tuned", "").code == 0);
  const std::string tuned = (setup.out.path() / "tuned" / "model.safetensors").string();
  const Outcome outcome = run("fedge model evaluate " + tuned + " --format json");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  const server::RoundMetrics last = setup.rounds("tuned").back();
  std::istringstream lines(outcome.output);
  std::string line;
  for (const server::RankMetrics& figures : last.ranks) {
    REQUIRE(std::getline(lines, line));
    const auto row = nlohmann::json::parse(line);
    CHECK(row["rank"] == figures.rank);
    CHECK(row["accuracy"] == figures.accuracy);
    CHECK(row["bits_per_byte"] == figures.bits_per_byte);
    CHECK(row["perplexity"].get<double>() == doctest::Approx(std::exp(figures.loss)));
  }
  CHECK_FALSE(std::getline(lines, line));
  CHECK(contains(run("fedge model evaluate " + tuned + " --ranks 2").output, "perplexity"));
  CHECK(contains(run("fedge model evaluate " + tuned + " --ranks 5").output,
                 "--ranks is 5, but " + tuned + " has 4 adapter ranks"));
  CHECK(contains(run("fedge model evaluate " + tuned + " --rouge 1").output, "no held-out line of text"));
  const TemporaryDirectory sayings;
  std::string said;
  for (int i = 0; i < 600; ++i) said += "say: the sea rolls\n";
  sayings.write("sayings.txt", {said.begin(), said.end()});
  const Outcome ended =
      run("fedge model evaluate " + tuned + " --rouge 2 --directory " + sayings.path().string());
  CHECK_MESSAGE(contains(ended.output, "of text, 2 lines to complete\n"), ended.output);
  CHECK(contains(ended.output, "ROUGE-L\n"));
  CHECK(contains(run("fedge model evaluate " + tuned + " --dataset fashion-mnist").output,
                 "fashion-mnist is not text, but " + tuned + " is a language model"));
  CHECK(contains(run("fedge model evaluate " + setup.base + " --ranks 2").output, "has no adapters"));
}

TEST_CASE("language: a table of byte pairs is learned, named by a run, and told to its devices") {
  const Setup setup;
  const std::string table = (setup.out.path() / "words.bpe").string();
  const Outcome learned = run("fedge data tokenizer text --directory " + setup.texts.path().string() +
                              " --vocabulary 300 --out " + table);
  REQUIRE_MESSAGE(learned.code == 0, learned.output);
  CHECK(contains(learned.output, "bytes a token of text"));
  const std::string named = " --set data.tokenizer.kind=bpe --set data.tokenizer.file=" + table;
  REQUIRE(setup.pretrain(named).code == 0);
  const Outcome outcome = setup.tune("real", named + " --set run.rounds=1 --mode concrete");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  // The file is not needed any more.
  std::filesystem::remove(table);
  CHECK(run("fedge-sim report " + (setup.out.path() / "real").string()).code == 0);
  CHECK(setup.generate((setup.out.path() / "real" / "model.safetensors").string(), "").starts_with("the "));
}

TEST_CASE("language: a tokenizer that is longer than a run's description reaches devices in parts") {
  const Setup setup;
  const std::string tokenizer = (setup.out.path() / "tokenizer.bin").string();
  test::write_long_tokenizer(tokenizer);
  std::string more;
  SUBCASE("from the coordinator") {}
  SUBCASE("without a server") { more = "[dissemination]\nkind = \"serverless\"\n"; }
  std::ofstream(setup.out.path() / "tune.toml")
      << "[run]\nname = \"tune\"\nrounds = 2\n[data]\ndataset = \"text\"\ndirectory = \""
      << setup.texts.path().string()
      << "\"\ncontext = 16\npartition = {kind = \"natural\", clients = 3}\ntokenizer = {kind = "
         "\"vocabulary\", file = \""
      << tokenizer
      << "\"}\n[model]\nkind = \"llama\"\nlayers = 1\nwidth = 16\nheads = 2\n[sampling]\n"
         "clients_per_round = 3\n[training]\nlocal_steps = 2\nbatch_size = 4\n"
      << more;
  for (const char* mode : {"abstract", "concrete"}) {
    const Outcome outcome = run("fedge-sim run " + (setup.out.path() / "tune.toml").string() + " --out " +
                                (setup.out.path() / mode).string() + " --mode " + mode);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  }
  const auto virtually = setup.rounds("abstract");
  const auto really = setup.rounds("concrete");
  REQUIRE(virtually.size() == 2);
  for (std::size_t round = 0; round < 2; ++round) {
    CHECK(really[round].model_hash == virtually[round].model_hash);
    // Without a server, the number of messages depends on which device has a chunk first.
    if (more.empty()) CHECK(really[round].bytes_up == virtually[round].bytes_up);
  }
  // Three devices received it before the first round.
  CHECK(virtually[0].bytes_down > virtually[1].bytes_down + 200'000);
  CHECK(really[0].bytes_down > really[1].bytes_down + 200'000);
  std::filesystem::remove(tokenizer);
  CHECK(setup.generate((setup.out.path() / "concrete" / "model.safetensors").string(), "").size() > 40);
}

TEST_CASE("language: the base that comes with Fedge writes words of the texts that it has read") {
  const std::string base = FEDGE_SOURCE_DIR "/examples/language/base.safetensors";
  const Outcome outcome =
      run("fedge model generate " + base + " --prompt 'the United' --tokens 12 --temperature 0");
  CHECK_MESSAGE(outcome.code == 0, outcome.output);
  CHECK_MESSAGE(outcome.output.starts_with("the United States"), outcome.output);
}

TEST_CASE("language: of many groups each client's largest are listed by name") {
  const TemporaryDirectory texts;
  for (int group = 0; group < 20; ++group) {
    const std::string text(static_cast<std::size_t>(200 + 10 * group), 'a');
    texts.write((group < 10 ? "t0" : "t") + std::to_string(group) + ".txt", {text.begin(), text.end()});
  }
  const std::string command = "fedge data ls " FEDGE_SOURCE_DIR
                              "/examples/language/wordnet.toml --set data.dataset=text --set data.context=10"
                              " --set data.directory=" +
                              texts.path().string();
  // 200 + 10 g letters are 19 + g windows of 10 letters with a next letter, and one shorter window.
  const Outcome natural = run(command + " --set data.partition.clients=20");
  CHECK_MESSAGE(contains(natural.output, "of\n       0       20  t00 20\n       1       21  t01 21\n"),
                natural.output);
  const Outcome mixed = run(command + " --set data.partition={kind=\\\"iid\\\",clients=1}");
  CHECK_MESSAGE(contains(mixed.output, "0      590  t19 39, t18 38, t17 37, t16 36 and 16 more\n"),
                mixed.output);
}

TEST_CASE("language: what does not fit together is named") {
  const Setup setup;
  REQUIRE(setup.pretrain().code == 0);
  const auto refused = [&](const std::string& more, const std::string& words) {
    const Outcome outcome = setup.tune("refused", more);
    CHECK(outcome.code == 1);
    CHECK_MESSAGE(contains(outcome.output, words), outcome.output);
  };
  refused(" --set model.width=32", "model.base: " + setup.base + ": tensor");
  refused(" --set model.base=/nowhere.safetensors", "model.base: ");
  refused(" --set model.heads=3", "model.width: 16 is not a multiple of model.heads, which is 3");
  refused(" --set strategy.planner.ranks=[2,8]",
          ": strategy.planner: rank 8 is above model.adapter.rank, which is 4");
  refused(" --check --set strategy.kind=ffa_lora --set strategy.planner.ranks=[2,8]",
          ": strategy.planner: rank 8 is above model.adapter.rank, which is 4");
  refused(" --check --set strategy={kind=\\\"splitft\\\",planner={cut_ranks=8}}",
          ": strategy.planner: rank 8 at the cut is above model.adapter.rank, which is 4");
  refused(" --set model.adapter.targets=[\\\"w\\\"]", "the model has no layer \"w\"");
  refused(" --set 'model={kind=\"mlp\"}'", "trains adapters; set model.adapter.rank");
  refused(" --set data.directory=/nowhere", "/nowhere");
  refused(" --set data.tokenizer.kind=bytes", setup.base + " was trained with a different data.tokenizer");
  refused(" --set model.base_hash=00", "is not the base model that the run started with");
  refused(" --set model.heads=4", setup.base + " was trained with a different model.heads");
  refused(" --set data.tokenizer.kind=bpe",
          "is required with kind = \"bpe\"; name a table written by `fedge data tokenizer`");
  refused(" --set strategy.schedule.kind=buffered --set strategy.kind=flexlora",
          "requires schedule.kind = \"synchronous\"");
  REQUIRE(setup.tune("queries", " --set model.adapter.targets=[\\\"q\\\",\\\"k\\\"]").code == 0);
  const std::string queries = (setup.out.path() / "queries/model.safetensors").string();
  refused(" --set model.base=" + queries + " --set model.adapter.targets=[\\\"v\\\",\\\"k\\\"]",
          queries + " was trained with a different model.adapter.targets");
  CHECK(setup
            .tune("again",
                  " --set model.base=" + queries + " --set model.adapter.targets=[\\\"k\\\",\\\"q\\\"]")
            .code == 0);
  const Outcome image = run("fedge model generate " FEDGE_SOURCE_DIR "/README.md");
  CHECK(image.code == 1);
}

TEST_CASE("language: a published model is imported, fine-tuned by devices as in virtual time, and exported") {
  const Setup setup;
  const std::string published = FEDGE_SOURCE_DIR "/tests/reference/published/";
  const std::string base = (setup.out.path() / "published.safetensors").string();
  std::string family = "llama";
  SUBCASE("llama") {}
  SUBCASE("GPT-2") { family = "gpt2"; }
  const Outcome imported = run("fedge model import " + published + family + " --out " + base);
  REQUIRE_MESSAGE(imported.code == 0, imported.output);
  CHECK(contains(imported.output, "parameters from a Hugging Face folder"));
  CHECK(contains(run("fedge model import " + published + family + " --out " + base).output, "exists"));
  // Kind, sizes and tokenizer are the base's.
  std::ofstream(setup.out.path() / "tune.toml")
      << "[run]\nname = \"tune\"\nrounds = 2\n[data]\ndataset = \"text\"\ndirectory = \""
      << setup.texts.path().string()
      << "\"\ncontext = 16\npartition = {kind = \"natural\", clients = 3}\n[model]\nbase = \"" << base
      << "\"\nadapter = {rank = 2}\n[sampling]\nclients_per_round = 2\n[strategy]\nkind = \"fedit\"\n"
         "[training]\nlocal_steps = 10\nbatch_size = 4\noptimizer = {kind = \"adamw\", learning_rate = "
         "0.01}\n";
  for (const char* mode : {"abstract", "concrete"}) {
    const Outcome outcome = run("fedge-sim run " + (setup.out.path() / "tune.toml").string() + " --out " +
                                (setup.out.path() / mode).string() + " --mode " + mode);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  }
  CHECK(setup.rounds("concrete")[1].model_hash == setup.rounds("abstract")[1].model_hash);
  const std::string tuned = (setup.out.path() / "concrete" / "model.safetensors").string();
  const auto text = [&](const std::string& file) {
    const Outcome outcome = run("fedge model generate " + file + " --temperature 0 --tokens 10 --prompt the");
    CHECK_MESSAGE(outcome.code == 0, outcome.output);
    return outcome.output;
  };
  CHECK(text(tuned) != text(base));
  const std::string folder = (setup.out.path() / "folder").string();
  const std::string adapters = (setup.out.path() / "adapters").string();
  const std::string again = (setup.out.path() / "again.safetensors").string();
  REQUIRE(run("fedge model export " + tuned + " --out " + folder).code == 0);
  REQUIRE(run("fedge model import " + folder + " --out " + again).code == 0);
  CHECK(text(again) == text(tuned));
  REQUIRE(run("fedge model adapters " + tuned + " --out " + adapters).code == 0);
  REQUIRE(
      run("fedge model import " + published + family + " --adapter " + adapters + " --force --out " + again)
          .code == 0);
  CHECK(text(again) == text(tuned));
}

TEST_CASE("language: what a model writes cannot control a terminal") {
  const Setup setup;
  // A random model over bytes writes all of them, among them ESC, and hardly any UTF-8.
  REQUIRE(setup.pretrain(" --set data.tokenizer.kind=bytes --set training.local_steps=1").code == 0);
  const Outcome outcome =
      run("fedge model generate " + setup.base + " --tokens 2000 --temperature 100 --top 0");
  REQUIRE(outcome.code == 0);
  std::size_t replaced = 0;
  for (std::size_t at = outcome.output.find("\xef\xbf\xbd"); at != std::string::npos;
       at = outcome.output.find("\xef\xbf\xbd", at + 3))
    ++replaced;
  CHECK(replaced > 500);
  for (const char c : outcome.output) {
    const auto byte = static_cast<unsigned char>(c);
    const bool shown = byte >= 32 || c == '\n' || c == '\t';
    if (!shown || byte == 127) FAIL("a control character: " << int{byte});
  }
  // U+009B alone begins a control sequence, and a prompt is printed, too.
  const Outcome prompted = run("fedge model generate " + setup.base +
                               " --prompt '\xc2\x9b"
                               "31m red' --tokens 1");
  CHECK(prompted.code == 0);
  CHECK(
      prompted.output.starts_with("\xef\xbf\xbd"
                                  "31m red"));
}
