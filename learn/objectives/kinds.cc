#include "learn/objectives/kinds.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/config/own_part.h"

namespace fedge::learn {
namespace {

using Shared = std::shared_ptr<const Objective>;

class Proximal final : public Objective {
 public:
  explicit Proximal(float mu) : mu_(mu) {}
  void add_gradient(std::span<const float> parameters, std::span<const float> start,
                    std::span<float> gradient) const override {
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += mu_ * (parameters[i] - start[i]);
  }

 private:
  float mu_;
};

Shared make_none(const ObjectiveSpec&) { return nullptr; }

Shared make_proximal(const ObjectiveSpec& spec) {
  return spec.mu != 0.0F ? std::make_shared<Proximal>(spec.mu) : nullptr;
}

ObjectiveFactory read_no_options(config::Reader&, ObjectiveSpec&) { return make_none; }

ObjectiveFactory read_proximal(config::Reader& section, ObjectiveSpec& spec) {
  spec.mu = static_cast<float>(
      section.number("mu", 0.01, {0.0, 1e4},
                     "weight of the proximal term. Larger values keep clients closer to the round's model."));
  return make_proximal;
}

// alpha (v - w) of alpha/2 ||v - w||^2; the linear term is the assignment's correction.
Shared make_dynamic(const ObjectiveSpec& spec) { return std::make_shared<Proximal>(spec.alpha); }

ObjectiveFactory read_dynamic(config::Reader& section, ObjectiveSpec& spec) {
  spec.alpha = static_cast<float>(section.number(
      "alpha", 0.01, {1e-9, 1e4},
      "strength of the regularisation. Larger values keep clients closer to the round's model, "
      "and follow their earlier updates more."));
  return make_dynamic;
}

ObjectiveFactory read_contrastive(config::Reader& section, ObjectiveSpec& spec) {
  spec.mu = static_cast<float>(section.number("mu", 1, {0.0, 1e4}, "weight of the contrastive term."));
  spec.temperature = static_cast<float>(
      section.number("temperature", 0.5, {1e-3, 1e3}, "temperature of the contrastive term."));
  return make_none;
}

ObjectiveFactory read_rank_pruning(config::Reader& section, ObjectiveSpec& spec) {
  spec.lambda = static_cast<float>(
      section.number("lambda", 0.001, {0.0, 1e4}, "weight of the penalty on the last ranks of a client."));
  spec.gamma = section.number("gamma", 0.9, {0.01, 0.999},
                              "fraction of its ranks that a client keeps when it prunes.");
  return make_none;
}

std::vector<ObjectiveKind>& objective_table() {
  static std::vector<ObjectiveKind> kinds = {
      ObjectiveKind{"plain", "McMahan et al. 2017", "minimises the local loss", read_no_options},
      ObjectiveKind{"proximal", "Li et al. 2020",
                    "minimises the local loss + mu / 2 ||v - w||^2, where v is the client's model and w is "
                    "the round's model",
                    read_proximal},
      ObjectiveKind{
          "scaffold", "Karimireddy et al. 2020",
          "adds the difference between the control variates of the server and of the client to each gradient",
          read_no_options},
      ObjectiveKind{
          "dynamic", "Acar et al. 2021",
          "minimises the local loss - g.v + alpha / 2 ||v - w||^2, where v is the client's model, w "
          "the round's model, and g is -alpha times the sum of the client's earlier updates",
          read_dynamic},
      ObjectiveKind{
          "contrastive", "Li, He, Song 2021",
          "minimises the local loss + mu times a term that pulls the inputs of the last layer "
          "towards those under the round's model, and away from those under the client's last model",
          read_contrastive},
      ObjectiveKind{"rank_pruning", "Cho et al. 2024",
                    "minimises the local loss + lambda ||B'|| ||A'|| of the client's last ranks; the client "
                    "drops these ranks once the penalty term shrinks",
                    read_rank_pruning},
  };
  return kinds;
}

// An own objective: its failures name it, and Task::train() returns them.
class OwnObjective final : public Objective {
 public:
  OwnObjective(std::string part, Shared objective)
      : part_(std::move(part)), objective_(std::move(objective)) {}

  void add_gradient(std::span<const float> parameters, std::span<const float> start,
                    std::span<float> gradient) const override {
    config::guarded(part_, [&] { objective_->add_gradient(parameters, start, gradient); });
  }

 private:
  std::string part_;
  Shared objective_;
};

ObjectiveFactory read_objective_options(const ObjectiveKind& kind, config::Reader& section,
                                        ObjectiveSpec& spec) {
  if (!kind.own) return kind.read(section, spec);
  const std::string part = std::string("the objective ") + kind.name;
  try {
    return [part, make = config::guarded(part, [&] { return kind.read(section, spec); })](
               const ObjectiveSpec& of) -> Shared {
      Shared objective = config::guarded(part, [&] { return make(of); });
      return objective ? std::make_shared<OwnObjective>(part, std::move(objective)) : nullptr;
    };
  } catch (const config::PartFailure& failure) {
    section.fail("kind", failure.what());
    return make_none;
  }
}

}  // namespace

std::span<const ObjectiveKind> objective_kinds() { return objective_table(); }

const ObjectiveKind* find_objective_kind(const std::string& name) {
  const auto found = std::ranges::find(objective_table(), name, &ObjectiveKind::name);
  return found == objective_table().end() ? nullptr : &*found;
}

void register_objective(const ObjectiveKind& kind) {
  config::register_kind(objective_table(), kind, "objective", "an objective");
}

ObjectiveSpec read_objective(config::Reader& section) {
  ObjectiveSpec spec;
  const std::vector<std::string> names = config::names_of(objective_table());
  const std::size_t chosen = section.choice(
      "kind", names, 0, "What local training minimises. If not set, strategy.kind determines it.",
      config::own_program_hint("an objective", /*on_clients=*/true));
  spec.kind = names[chosen];
  const auto read = [&](const ObjectiveKind& kind, ObjectiveSpec& into) {
    section.keys_of("kind", kind.name, spec.kind,
                    [&](config::Reader& keys) { into.make = read_objective_options(kind, keys, into); });
  };
  read(objective_table()[chosen], spec);
  ObjectiveSpec other;
  for (const ObjectiveKind& kind : objective_table())
    if (kind.name != spec.kind) read(kind, other);
  try {
    (void)objective_of(spec);  // the factory works
  } catch (const config::PartFailure& failure) {
    section.fail("kind", failure.what());
  }
  return spec;
}

Shared objective_of(const ObjectiveSpec& spec) {
  if (spec.make) return spec.make(spec);
  const ObjectiveKind* kind = find_objective_kind(spec.kind);
  if (kind == nullptr) return nullptr;
  static const config::Table kNoOptions;
  config::Reader section(kNoOptions, "training.objective", "");
  ObjectiveSpec defaults;
  return read_objective_options(*kind, section, defaults)(spec);
}

}  // namespace fedge::learn
