#include "run/evaluation.h"

#include <string>
#include <vector>

namespace fedge::run {
namespace {

const std::vector<std::string> kWhereNames = {"coordinator", "clients", "both", "none"};

}  // namespace

EvaluationSpec read_evaluation(config::Reader& root, const learn::DataSpec& data) {
  using Where = EvaluationSpec::Where;
  EvaluationSpec spec;
  config::Reader section = root.section("evaluation");
  const Where usual = is_own(data) ? Where::kClients : Where::kCoordinator;
  spec.where = static_cast<Where>(section.choice(
      "where", kWhereNames, static_cast<std::size_t>(usual),
      "Where models are evaluated. The default is coordinator, or clients with data.partition.kind = "
      "\"own\".\n"
      "coordinator: on the test samples that the coordinator has.\nclients: on each client's own validation "
      "samples "
      "if data.validation is above 0, else on its own test samples; only sums leave the clients.\nboth: on "
      "both.\nnone: nowhere; no accuracy is known."));
  if (is_own(data) && spec.on_coordinator())
    section.fail("where",
                 "the coordinator has no test samples if every client has its own data "
                 "(data.partition.kind = \"own\"); use \"clients\" or \"none\"",
                 {"data.partition.kind"});
  if (!is_own(data) && spec.on_clients())
    section.fail(
        "where",
        "clients have test samples only if they have their own data; set data.partition.kind = \"own\"",
        {"data.partition.kind"});
  if (section.has("clients") && !spec.on_clients())
    section.fail("clients", "has no effect, because clients evaluate no models (evaluation.where)",
                 {"evaluation.where"});
  spec.clients = static_cast<std::size_t>(section.integer(
      "clients", 0, {0, 10'000'000},
      "clients, both: number of clients that evaluate each model, drawn at random. 0: all that are "
      "connected."));
  root.adopt(section);
  return spec;
}

}  // namespace fedge::run
