// What runs whose clients keep parameters for themselves, and runs with external models, may be combined
// with.
#include <doctest/doctest.h>

#include <string>

#include "core/config/document.h"
#include "run/run_config.h"

using namespace fedge;

namespace {

constexpr const char* kOwn =
    "[data]\ndataset = \"csv\"\nname = \"t\"\nnumeric = [\"a\"]\ntarget = \"b\"\nclasses = [\"x\", \"y\"]\n"
    "partition = { kind = \"own\", clients = 4 }\n";

// "" if the run file can be run.
std::string refusal_of(const std::string& sections) {
  const auto document = config::parse_toml(sections, "run.toml");
  REQUIRE_MESSAGE(document, document.error().message);
  const auto run = run::read_run_config(*document);
  return run ? "" : run.error().message;
}

void says(const std::string& sections, const std::string& reason) {
  const std::string message = refusal_of(sections);
  CHECK_MESSAGE(message.find(reason) != std::string::npos, message);
}

}  // namespace

TEST_CASE("personal run: with data of their own, clients keep layers or a second model") {
  const std::string own = kOwn;
  CHECK(refusal_of(own + "[model]\npersonal = [\"dense3\"]\n") == "");
  CHECK(refusal_of(own + "[model]\npersonal = [\"dense3\"]\n[secure_aggregation]\nkind = \"exact\"\n") == "");
  CHECK(refusal_of(own + "[training.personal]\nkind = \"ditto\"\n") == "");
  CHECK(refusal_of("[training.personal]\nkind = \"ditto\"\n") == "");
  CHECK(refusal_of("[model]\npersonal = [\"dense3\"]\n[evaluation]\nwhere = \"none\"\n") == "");
}

TEST_CASE("personal run: what it cannot honour is refused by key") {
  const std::string personal = std::string(kOwn) + "[model]\npersonal = [\"dense3\"]\n";
  says("[model]\npersonal = [\"dense3\"]\n", "evaluation.where: the coordinator has no client's own layers");
  says(personal + "[strategy]\nkind = \"fedplt\"\n", "need planner.kind = \"full\"");
  says(personal + "[strategy]\nkind = \"heterofl\"\n", "need planner.kind = \"full\"");
  says(personal + "[strategy]\nkind = \"scaffold\"\n", "keep nothing else beside them");
  says(std::string(kOwn) + "[model]\nkind = \"mlp\"\npersonal = [\"dense3\"]\nadapter = { rank = 2 }\n",
       "remove model.adapter");
  says(personal + "[dissemination]\nkind = \"serverless\"\n", "need a coordinator that says which");
}
