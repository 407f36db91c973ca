// Parses Prometheus' text exposition format, slowly and literally by
// https://prometheus.io/docs/instrumenting/exposition_formats/, and applies the checks of promtool's linter.
// It shares no code with the writer.
#pragma once

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fedge::test {

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Scrape {
  std::map<std::string, std::string> help;
  std::map<std::string, std::string> type;
  std::vector<Sample> samples;
  std::vector<std::string> problems;  // empty: the text is valid

  std::optional<double> value(const std::string& name,
                              const std::map<std::string, std::string>& labels = {}) const {
    for (const Sample& sample : samples)
      if (sample.name == name && sample.labels == labels) return sample.value;
    return std::nullopt;
  }
};

class ExpositionParser {
 public:
  explicit ExpositionParser(const std::string& text) : text_(text) {}

  Scrape run() {
    if (text_.empty() || text_.back() != '\n') problem("the last line has no end");
    std::string line;
    for (const char c : text_) {
      if (c != '\n') {
        line += c;
        continue;
      }
      take_line(line);
      line.clear();
    }
    check_histograms();
    return std::move(scrape_);
  }

 private:
  void problem(const std::string& what) { scrape_.problems.push_back(what); }

  static bool is_name(const std::string& name, bool colons) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
    for (const char c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && !(colons && c == ':')) return false;
    return true;
  }

  void take_line(const std::string& line) {
    if (line.rfind("# HELP ", 0) == 0 || line.rfind("# TYPE ", 0) == 0) return take_comment(line);
    if (line.empty() || line[0] == '#') return;
    take_sample(line);
  }

  void take_comment(const std::string& line) {
    const bool help = line[2] == 'H';
    const std::size_t blank = line.find(' ', 7);
    const std::string name = line.substr(7, blank - 7);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (!is_name(name, true)) problem("no name of a metric: " + line);
    if (rest.empty()) problem("nothing is said: " + line);
    auto& said = help ? scrape_.help : scrape_.type;
    if (!said.emplace(name, rest).second) problem("said twice: " + line);
    if (seen_.contains(name)) problem("said after the samples: " + line);
    if (help) return;
    static const std::set<std::string> kTypes = {"counter", "gauge", "histogram", "summary", "untyped"};
    if (!kTypes.contains(rest)) problem("no such type: " + line);
    if ((rest == "counter") != (name.size() > 6 && name.substr(name.size() - 6) == "_total"))
      problem("counters, and they alone, end with _total: " + line);
  }

  // Returns the family of a sample: its own name, or a histogram's name without the suffix.
  std::string family_of(const std::string& name) const {
    for (const std::string ending : {"_bucket", "_sum", "_count"}) {
      if (name.size() <= ending.size() || name.substr(name.size() - ending.size()) != ending) continue;
      const std::string family = name.substr(0, name.size() - ending.size());
      const auto type = scrape_.type.find(family);
      if (type != scrape_.type.end() && type->second == "histogram") return family;
    }
    return name;
  }

  void take_sample(const std::string& line) {
    Sample sample;
    std::size_t at = line.find_first_of("{ ");
    sample.name = line.substr(0, at);
    if (!is_name(sample.name, true) || at == std::string::npos) return problem("no sample: " + line);
    if (line[at] == '{' && !take_labels(line, ++at, sample.labels)) return problem("no labels: " + line);
    if (at >= line.size() || line[at] != ' ') return problem("no value: " + line);
    char* end = nullptr;
    sample.value = std::strtod(line.c_str() + at + 1, &end);
    if (end != line.c_str() + line.size() || line[at + 1] == ' ') problem("no number: " + line);
    const std::string family = family_of(sample.name);
    if (!scrape_.type.contains(family) || !scrape_.help.contains(family))
      problem("without HELP or TYPE: " + line);
    if (family != last_ && !seen_.insert(family).second) problem("apart from its family: " + line);
    last_ = family;
    if (!series_.insert({sample.name, sample.labels}).second) problem("twice: " + line);
    if (scrape_.type[family] == "counter" && !(sample.value >= 0)) problem("a counter below 0: " + line);
    scrape_.samples.push_back(std::move(sample));
  }

  // Parses labels from behind the opening brace; leaves `at` behind the closing brace.
  bool take_labels(const std::string& line, std::size_t& at, std::map<std::string, std::string>& labels) {
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find('=', at);
      if (equals == std::string::npos || equals + 1 >= line.size() || line[equals + 1] != '"') return false;
      const std::string name = line.substr(at, equals - at);
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] != '\\') {
          value += line[at];
          continue;
        }
        if (++at >= line.size() || (line[at] != '\\' && line[at] != '"' && line[at] != 'n')) return false;
        value += line[at] == 'n' ? '\n' : line[at];
      }
      if (at++ >= line.size() || !is_name(name, false) || !labels.emplace(name, value).second) return false;
      if (at < line.size() && line[at] == ',') ++at;
    }
    return at++ < line.size();
  }

  void check_histograms() {
    for (const auto& [family, type] : scrape_.type) {
      if (type != "histogram") continue;
      double bound = -INFINITY;
      double count = 0;
      for (const Sample& sample : scrape_.samples) {
        if (sample.name != family + "_bucket") continue;
        const double next = std::strtod(sample.labels.at("le").c_str(), nullptr);
        if (next <= bound || sample.value < count) problem(family + ": buckets do not rise");
        bound = next;
        count = sample.value;
      }
      if (bound != INFINITY || scrape_.value(family + "_count") != count || !scrape_.value(family + "_sum"))
        problem(family + ": no +Inf, or sum and count do not fit");
    }
  }

  const std::string& text_;
  Scrape scrape_;
  std::string last_;
  std::set<std::string> seen_;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> series_;
};

inline Scrape parse_exposition(const std::string& text) { return ExpositionParser(text).run(); }

}  // namespace fedge::test
