// The OpenAPI 3.1 document, from the same tables that dispatch and check requests.
#include <string_view>

#include "core/detail/json.h"
#include "server/api/detail/call.h"

namespace fedge::server {
namespace {

Json reference(std::string_view schema) {
  Json json;
  json["$ref"] = "#/components/schemas/" + std::string(schema);
  return json;
}

Json list_of(Json items) {
  Json json;
  json["type"] = "array";
  json["items"] = std::move(items);
  return json;
}

Json type_json(std::string_view type) {
  if (type.ends_with('?')) {
    Json either;
    either["anyOf"] = Json::array({type_json(type.substr(0, type.size() - 1)), Json{{"type", "null"}}});
    return either;
  }
  if (type.ends_with("[]")) return list_of(type_json(type.substr(0, type.size() - 2)));
  Json json;
  if (type == "strings" || type == "integers") return list_of(type_json(type.substr(0, type.size() - 1)));
  if (find_schema(std::string(type)) != nullptr) return reference(type);
  json["type"] = type;
  if (type == "integer") json["minimum"] = 0;
  return json;
}

Json schema_json(const Schema& schema) {
  Json json;
  json["type"] = "object";
  json["description"] = schema.doc;
  json["properties"] = Json::object();
  Json required = Json::array();
  for (const FieldDoc& field : schema.fields) {
    Json property = type_json(field.type);
    property["description"] = field.doc;
    json["properties"][field.name] = std::move(property);
    if (field.required) required.push_back(field.name);
  }
  if (!required.empty()) json["required"] = std::move(required);
  json["additionalProperties"] = schema.open;
  return json;
}

Json page_json(std::string_view item) {
  Json json;
  json["type"] = "object";
  json["properties"]["items"] = list_of(reference(item));
  json["properties"]["next"] =
      Json{{"type", Json::array({"integer", "string", "null"})},
           {"description", "Value of the parameter after for the next page; null: none"}};
  json["required"] = Json::array({"items", "next"});
  json["additionalProperties"] = false;
  return json;
}

Json content(const char* type, Json schema) {
  Json json;
  json["content"][type]["schema"] = std::move(schema);
  return json;
}

Json parameter_json(const char* name, const char* place, const char* type, const char* doc) {
  Json json;
  json["name"] = name;
  json["in"] = place;
  json["description"] = doc;
  json["required"] = std::string_view(place) == "path";
  json["schema"] = type_json(type);
  if (std::string_view(name) == "limit") {
    json["schema"]["minimum"] = 1;
    json["schema"]["maximum"] = kPageMost;
  }
  return json;
}

Json parameters_json(const ApiRoute& route) {
  Json list = Json::array();
  const std::string path = route.path;
  for (std::size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    const std::string name = path.substr(at + 1, path.find('}', at) - at - 1);
    list.push_back(parameter_json(name.c_str(), "path", name == "user" ? "string" : "integer",
                                  name == "user" ? "Name of the user" : ("Number of the " + name).c_str()));
  }
  for (const Parameter& parameter : route.query)
    list.push_back(parameter_json(parameter.name, "query", parameter.type, parameter.doc));
  if (route.stream)
    list.push_back(parameter_json("Last-Event-ID", "header", "string", "Event after which to go on"));
  else if (std::string_view(route.method) == "GET" && !route.file)
    list.push_back(parameter_json("If-None-Match", "header", "string", "ETag of an earlier answer"));
  if (std::string_view(route.method) == "PATCH")
    list.push_back(parameter_json("If-Match", "header", "string", "ETag of the state that is to be changed"));
  if (std::string_view(route.operation) == "submitRun")
    list.push_back(parameter_json("Idempotency-Key", "header", "string",
                                  "A repeated request with the same key submits no second run"));
  return list;
}

Json operation_json(const ApiRoute& route) {
  Json json;
  json["operationId"] = route.operation;
  json["summary"] = route.summary;
  json["description"] = std::string("Needs the role ") + name_of(route.role) +
                        (route.everywhere ? " in all projects." : " in the project.");
  json["x-role"] = name_of(route.role);
  json["parameters"] = parameters_json(route);
  if (*route.body != '\0') {
    json["requestBody"] = content("application/json", reference(route.body));
    for (const FieldDoc& field : find_schema(route.body)->fields)
      if (field.required) json["requestBody"]["required"] = true;
  }
  const std::string_view answer = route.answer;
  Json success = route.stream ? content("text/event-stream", type_json("string"))
                 : route.file
                     ? content("application/octet-stream", type_json("string"))
                     : content("application/json", answer.ends_with("[]")
                                                       ? page_json(answer.substr(0, answer.size() - 2))
                                                       : reference(answer));
  success["description"] = "Success";
  json["responses"][std::to_string(route.success)] = std::move(success);
  if (std::string_view(route.method) == "GET" && !route.stream && !route.file)
    json["responses"]["304"]["description"] = "Not changed";
  Json failure = content("application/problem+json", reference("Problem"));
  failure["description"] = "An error";
  json["responses"]["default"] = std::move(failure);
  return json;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::string openapi_document() {
  Json json;
  json["openapi"] = "3.1.0";
  json["info"]["title"] = "Fedge coordinator";
  json["info"]["version"] = "1";
  json["info"]["description"] =
      "The admin API of fedge-coordinator. Requests over HTTPS need the header Authorization: Bearer TOKEN, "
      "with a token of 'fedge user token create'.";
  json["servers"] = Json::array({Json{{"url", kApiRoot}}});
  json["security"] = Json::array({Json{{"token", Json::array()}}});
  for (const ApiRoute& route : all_routes())
    json["paths"][route.path][lower(route.method)] = operation_json(route);
  json["components"]["securitySchemes"]["token"] = Json{{"type", "http"}, {"scheme", "bearer"}};
  for (const Schema& schema : api_schemas()) json["components"]["schemas"][schema.name] = schema_json(schema);
  return json_text(json, 1);
}

}  // namespace fedge::server
