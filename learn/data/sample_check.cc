#include "learn/data/sample_check.h"

#include <algorithm>
#include <cmath>

namespace fedge::learn {
namespace {

// What is wrong with a text's arrays; empty if nothing.
std::string fault_of_windows(const TextInputs& text, std::size_t samples, std::size_t width) {
  const auto number = [](std::size_t value) { return std::to_string(value); };
  if (text.windows.size() != samples)
    return number(text.windows.size()) + " windows and " + number(samples) + " labels";
  if (text.bytes.size() != text.vocabulary)
    return "the bytes of " + number(text.bytes.size()) + " tokens, but the vocabulary has " +
           number(text.vocabulary);
  for (const TextInputs::Window& window : text.windows) {
    if (window.targets < 1 || window.targets > width)
      return "a window of " + number(window.targets) + " targets, but the shape allows 1 to " + number(width);
    if (std::size_t{window.start} + window.targets >= text.tokens.size())
      return "a window of " + number(window.targets) + " targets that begins at token " +
             number(window.start) + ", but only " + number(text.tokens.size()) + " tokens";
  }
  for (const Token token : text.tokens)
    if (token >= text.vocabulary)
      return "the token " + number(token) + ", but the vocabulary has " + number(text.vocabulary);
  return "";
}

// The same for targets that are no class.
std::string fault_of_targets(const Dataset& data) {
  const Targets& targets = data.targets;
  const std::size_t points =
      targets.shape.kind == TargetKind::kPoints ? data.size() * targets.shape.points : 0;
  const std::size_t values = targets.shape.has_values() ? data.size() * targets.shape.outputs : 0;
  if (targets.points.size() != points || targets.values.size() != values)
    return "the targets of another number of samples";
  for (const Label label : targets.points)
    if (label >= targets.shape.outputs) return "the class " + std::to_string(label) + " of a point";
  const bool labels = targets.shape.kind == TargetKind::kLabels;
  for (const float value : targets.values)
    if (labels ? value != 0 && value != 1 : !std::isfinite(value))
      return labels ? "a label that is neither 0 nor 1" : "a target that is not finite";
  return "";
}

// The same for inputs that are floats.
std::string fault_of_values(const Dataset& data) {
  const bool bytes = !data.packed.bytes.empty();
  const std::size_t values = bytes ? data.packed.bytes.size() : data.floats.size();
  if (values != data.size() * data.shape.size())
    return std::to_string(values) + " values for " + std::to_string(data.size()) + " samples of " +
           std::to_string(data.shape.size());
  const std::span<const float> floats =
      bytes ? std::span<const float>(data.packed.value) : data.floats.span();
  if (std::ranges::all_of(floats, [](float value) { return std::isfinite(value); })) return "";
  return "a value that is not finite";
}

}  // namespace

Result<void> check_info(const DatasetInfo& info, bool text) {
  const auto wrong = [](const std::string& what) { return invalid("describe() returned " + what); };
  const InputShape& shape = info.shape;
  if (shape.tokens != text)
    return wrong(text ? "a shape without `tokens`, but its trait `text` is set"
                      : "a shape with `tokens`; set its trait `text`");
  if (shape.size() == 0 || (text && (shape.height != 1 || shape.channels != 1)))
    return wrong("a shape of " + std::to_string(shape.height) + "x" + std::to_string(shape.width) + "x" +
                 std::to_string(shape.channels) +
                 (text ? "; of a text only the width may differ from 1" : ", which has no inputs"));
  if (info.classes > kMaxClasses || (info.classes == 0 && !text))
    return wrong(std::to_string(info.classes) + " classes; 1 to 65536 are possible" +
                 (text ? ", or 0 if they depend on the files" : ""));
  const TargetShape target = info.target();
  const std::string outputs = std::to_string(target.outputs) + " outputs; ";
  if (text && (target.outputs < 1 || target.outputs > kMaxTokens || target.kind != TargetKind::kClass))
    return wrong(outputs + "they are the tokens of the vocabulary, 1 to " + std::to_string(kMaxTokens));
  if (target.outputs == 0 || target.outputs > kMaxClasses) return wrong(outputs + "1 to 65536 are possible");
  if (!text && target.groups() != info.classes)
    return wrong(outputs + (target.has_values() ? "with values or several labels there is one class"
                                                : "there must be one for each class"));
  if (target.points == 0 || target.points > kMaxPoints ||
      (target.points > 1 && target.kind != TargetKind::kPoints))
    return wrong(std::to_string(target.points) + " points of a sample");
  return {};
}

Result<void> check_labels(std::span<const Label> labels, std::size_t classes, const DatasetInfo& info,
                          const std::string& function) {
  if (classes == 0 || classes > kMaxClasses || (info.classes != 0 && classes != info.classes))
    return invalid(function + " returned " + std::to_string(classes) + " classes, but describe() " +
                   std::to_string(info.classes));
  for (const Label label : labels)
    if (label >= classes)
      return invalid(function + " returned the label " + std::to_string(label) + ", but the data set has " +
                     std::to_string(classes) + " classes");
  return {};
}

Result<void> check_samples(const Dataset& data, const DatasetInfo& info, const std::string& function) {
  if (data.shape != info.shape || data.target() != info.target())
    return invalid(function + " returned samples of another shape than describe()");
  FEDGE_TRY_VOID(check_labels(data.labels, data.classes, info, function));
  const std::string fault =
      data.shape.tokens ? fault_of_windows(data.text, data.size(), data.shape.width) : fault_of_values(data);
  if (!fault.empty()) return invalid(function + " returned " + fault);
  const std::string wrong = fault_of_targets(data);
  return wrong.empty() ? Result<void>() : invalid(function + " returned " + wrong);
}

}  // namespace fedge::learn
