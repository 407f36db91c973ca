#include "server/report/detail/data_statistics.h"

#include <optional>
#include <string>
#include <utility>

#include "server/report/detail/fields.h"

namespace fedge::server {
namespace {

using nlohmann::ordered_json;

// Calls visit(name, estimate) for each estimate of a column.
template <class Column, class Visit>
void for_each_estimate(Column&& column, const Visit& visit) {
  visit("minimum", column.minimum);
  visit("lower_quartile", column.lower_quartile);
  visit("median", column.median);
  visit("upper_quartile", column.upper_quartile);
  visit("maximum", column.maximum);
}

Result<void> read_column(const ordered_json& object, learn::DataStatistics& statistics) {
  if (!object.is_object()) return invalid("columns is not a list of objects");
  Fields fields(object);
  learn::ColumnStatistics column{.name = fields.text("name"),
                                 .count = fields.count("count"),
                                 .missing = fields.count("missing"),
                                 .mean = fields.real("mean"),
                                 .mean_error = fields.real("mean_error"),
                                 .deviation = fields.real("deviation")};
  for_each_estimate(column, [&](const std::string& name, std::optional<learn::Estimate>& estimate) {
    if (column.count > 0 && !fields.has("agreed"))
      estimate = learn::Estimate{fields.real(name.c_str()), fields.real((name + "_error").c_str())};
  });
  if (fields.has("agreed"))
    for (const double count : fields.reals("agreed")) {
      if (!(count >= 0 && count < 0x1p63)) return invalid("columns: agreed is not a list of counts");
      column.agreed.push_back(static_cast<std::uint64_t>(count));
    }
  if (!fields.problem().empty()) return invalid("columns: " + fields.problem());
  statistics.columns.push_back(std::move(column));
  return {};
}

}  // namespace

ordered_json to_object(const learn::DataStatistics& statistics) {
  ordered_json object;
  object["clients"] = statistics.clients;
  object["samples"] = statistics.samples;
  object["labels"] = ordered_json::array();
  for (const auto& label : statistics.labels)
    object["labels"].push_back({{"name", label.name}, {"count", label.count}});
  object["columns"] = ordered_json::array();
  for (const learn::ColumnStatistics& column : statistics.columns) {
    ordered_json made;
    made["name"] = column.name;
    made["count"] = column.count;
    made["missing"] = column.missing;
    made["mean"] = json_number(column.mean);
    made["mean_error"] = json_number(column.mean_error);
    made["deviation"] = json_number(column.deviation);
    for_each_estimate(column, [&](const std::string& name, const std::optional<learn::Estimate>& estimate) {
      made[name] = estimate ? json_number(estimate->value) : ordered_json(nullptr);
      made[name + "_error"] = estimate ? json_number(estimate->error) : ordered_json(nullptr);
    });
    if (!column.agreed.empty()) made["agreed"] = column.agreed;
    object["columns"].push_back(std::move(made));
  }
  return object;
}

Result<learn::DataStatistics> read_statistics(const ordered_json& object) {
  if (!object.is_object()) return invalid("statistics is not an object");
  Fields fields(object);
  learn::DataStatistics statistics{.clients = fields.count("clients"), .samples = fields.count("samples")};
  for (const char* key : {"labels", "columns"})
    if (!object.contains(key) || !object.at(key).is_array() || object.at(key).size() > Fields::kMostListed)
      return invalid("statistics: " + std::string(key) + " is not a list");
  for (const ordered_json& label : object.at("labels")) {
    if (!label.is_object()) return invalid("statistics: labels is not a list of objects");
    Fields inner(label);
    statistics.labels.push_back({inner.text("name"), inner.count("count")});
    if (!inner.problem().empty()) return invalid("statistics: labels: " + inner.problem());
  }
  for (const ordered_json& column : object.at("columns"))
    if (const auto read = read_column(column, statistics); !read)
      return invalid("statistics: " + read.error().message);
  if (!fields.problem().empty()) return invalid("statistics: " + fields.problem());
  return statistics;
}

}  // namespace fedge::server
