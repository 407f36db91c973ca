// The admin API's OpenAPI document as a judge of answers: the operation that a request reaches, the role that
// it needs, and the form of its answer. An unknown keyword of a schema fails, so that nothing stays
// unchecked. One thread.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "server/api/api.h"
#include "server/http/http.h"

namespace fedge::fuzz {

using ApiJson = nlohmann::json;

// Parses the text; anything but one JSON value in UTF-8 fails.
inline ApiJson parsed_answer(const std::string& text) {
  ApiJson json = ApiJson::parse(text, nullptr, /*allow_exceptions=*/false);
  FEDGE_CHECK(!json.is_discarded(), "an answer is not JSON: " + text);
  return json;
}

class ApiDocument {
 public:
  struct Operation {
    std::string id;  // "listRuns"
    std::string method;
    std::vector<std::string> segments;  // of the path; "{run}" stands for any
    server::Role role{};
    bool everywhere = false;
    int success = 0;
    const ApiJson* answer = nullptr;  // schema of a JSON answer; null: a file or a stream
  };

  ApiDocument() : document_(parsed_answer(server::openapi_document())) {
    for (const auto& [path, methods] : document_["paths"].items())
      for (const auto& [method, described] : methods.items()) {
        Operation one{.id = described["operationId"],
                      .method = upper(method),
                      .segments = split(server::kApiRoot + path),
                      .role = *server::parse_role(described["x-role"].get<std::string>())};
        one.everywhere = described["description"].get<std::string>().ends_with(" in all projects.");
        const ApiJson& responses = described["responses"];
        for (const auto& [status, response] : responses.items())
          if (status.starts_with('2')) {
            one.success = std::stoi(status);
            const ApiJson& content = response["content"];
            if (content.contains("application/json")) one.answer = &content["application/json"]["schema"];
          }
        operations_.push_back(std::move(one));
      }
  }
  ApiDocument(const ApiDocument&) = delete;
  ApiDocument& operator=(const ApiDocument&) = delete;

  // Returns what the document says of an operation; `path` is as in the document.
  const ApiJson& operation_json(std::string method, const std::string& path) const {
    for (char& c : method)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return document_.at("paths").at(path).at(method);
  }
  // Follows a reference to a schema.
  const ApiJson& resolved(const ApiJson& reference) const {
    return document_.at("components")
        .at("schemas")
        .at(reference.at("$ref").get<std::string>().substr(kReference.size()));
  }

  // Returns the operation with this method at this path; null if there is none.
  const Operation* find(const std::string& method, const std::string& path) const {
    const std::vector<std::string> given = split(path);
    for (const Operation& one : operations_) {
      if (one.method != (method == "HEAD" ? "GET" : method)) continue;
      if (std::ranges::equal(one.segments, given, fits)) return &one;
    }
    return nullptr;
  }

  void check_problem(const ApiJson& problem) const {
    check(document_["components"]["schemas"]["Problem"], problem, "problem");
  }

  // Checks the value against the schema; `where` names it in the failure.
  void check(const ApiJson& schema, const ApiJson& value, const std::string& where) const {
    for (const auto& [keyword, operand] : schema.items()) {
      if (keyword == "description" || keyword == "properties" || keyword == "additionalProperties") continue;
      if (keyword == "$ref")
        check(resolved(schema), value, where);
      else if (keyword == "anyOf")
        check(operand[value.is_null() ? 1 : 0], value, where);  // a type, or null
      else if (keyword == "type")
        FEDGE_CHECK(has_type(operand, value), where + " has another type: " + value.dump());
      else if (keyword == "minimum")
        FEDGE_CHECK(value >= operand, where + " is too small: " + value.dump());
      else if (keyword == "items")
        for (const ApiJson& item : value) check(operand, item, where + "[]");
      else if (keyword == "required")
        for (const ApiJson& name : operand)
          FEDGE_CHECK(value.contains(name.get<std::string>()), where + " lacks " + name.dump());
      else
        FEDGE_CHECK(false, "an unknown keyword in the document: " + keyword);
    }
    if (schema.contains("properties")) check_properties(schema, value, where);
  }

 private:
  static constexpr std::string_view kReference = "#/components/schemas/";

  static std::string upper(std::string text) {
    for (char& c : text)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return text;
  }
  static std::vector<std::string> split(std::string_view path) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      parts.emplace_back(path.substr(begin, end - begin));
      begin = end + 1;
    }
    return parts;
  }
  static bool fits(const std::string& wanted, const std::string& given) {
    if (!wanted.starts_with('{')) return wanted == given;
    const auto value = server::percent_decoded(given);
    return value && !value->empty();
  }
  static bool has_type(const ApiJson& type, const ApiJson& value) {
    if (type.is_array())
      return std::ranges::any_of(type, [&](const ApiJson& one) { return has_type(one, value); });
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    return type == "null" && value.is_null();
  }
  void check_properties(const ApiJson& schema, const ApiJson& value, const std::string& where) const {
    for (const auto& [name, part] : value.items()) {
      if (schema["properties"].contains(name))
        check(schema["properties"][name], part, where + "." + name);
      else
        FEDGE_CHECK(schema["additionalProperties"] == true, where + " has an undocumented field " + name);
    }
  }

  ApiJson document_;
  std::vector<Operation> operations_;
};

}  // namespace fedge::fuzz
