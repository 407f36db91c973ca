#include "client/trainers/detail/run_description.h"

#include <charconv>
#include <string>

namespace fedge::client {
namespace {

// The shortest decimal form of the float: 0.05, not 0.05000000074505806.
double shortest_decimal(float value) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof text, value);
  double result = 0;
  std::from_chars(text, written.ptr, result);
  return result;
}

void add_language(const learn::LanguageSpec& spec, nlohmann::ordered_json& network) {
  network["layers"] = spec.layers;
  network["width"] = spec.width;
  network["heads"] = spec.heads;
  network["tied"] = spec.tied;
  if (spec.positions > 0) network["positions"] = spec.positions;
  if (network["kind"] == "transformer") return;
  network["kv_heads"] = spec.kv_heads;
  network["mlp_width"] = spec.mlp_width;
  network["norm_epsilon"] = shortest_decimal(spec.epsilon);
  network["rope_theta"] = spec.rotary.theta;
  if (spec.rotary.scaling == learn::RotaryScaling::kNone) return;
  network["rope_scaling"] = learn::name_of(spec.rotary.scaling);
  network["rope_factor"] = spec.rotary.factor;
  if (spec.rotary.scaling == learn::RotaryScaling::kLinear) return;
  network["rope_low"] = spec.rotary.low;
  network["rope_high"] = spec.rotary.high;
  network["rope_original"] = spec.rotary.original;
}

// Lists of layers, and the options of a kind that a program registers, are in the run file alone.
nlohmann::ordered_json network_of(const learn::ModelSpec& spec) {
  nlohmann::ordered_json network = {{"kind", spec.kind}};
  if (spec.kind == "mlp") network["hidden"] = spec.hidden;
  if (spec.kind == "cnn") {
    network["channels"] = spec.channels;
    network["dense"] = spec.dense;
  }
  if (spec.kind == "transformer" || spec.kind == "llama") add_language(spec.language, network);
  return network;
}

}  // namespace

nlohmann::ordered_json describe_training(const learn::TrainingSpec& spec) {
  const bool proximal = spec.objective.kind == "proximal";
  nlohmann::ordered_json training = {{"learning_rate", shortest_decimal(spec.learning_rate)},
                                     {"momentum", shortest_decimal(spec.momentum)},
                                     {"weight_decay", shortest_decimal(spec.weight_decay)},
                                     {"local_epochs", spec.local_epochs},
                                     {"batch_size", spec.batch_size},
                                     {"objective", proximal ? "proximal" : "plain"}};
  if (proximal) training["mu"] = shortest_decimal(spec.objective.mu);
  if (spec.local_steps > 0) training["local_steps"] = spec.local_steps;
  if (spec.optimizer == learn::OptimizerKind::kAdamW) {
    training["optimizer"] = "adamw";
    training["beta1"] = shortest_decimal(spec.adam.beta1);
    training["beta2"] = shortest_decimal(spec.adam.beta2);
    training["epsilon"] = shortest_decimal(spec.adam.epsilon);
  }
  if (spec.schedule.cosine)
    training["schedule"] = {{"kind", "cosine"},
                            {"warmup", spec.schedule.warmup},
                            {"final", spec.schedule.final},
                            {"rounds", spec.schedule.rounds}};
  return training;
}

nlohmann::ordered_json describe_model(const learn::ModelSpec& spec) {
  nlohmann::ordered_json model = network_of(spec);
  if (spec.adapter.rank > 0)
    model["adapter"] = {{"rank", spec.adapter.rank},
                        {"scale", shortest_decimal(spec.adapter.scale)},
                        {"targets", spec.adapter.targets}};
  return model;
}

}  // namespace fedge::client
