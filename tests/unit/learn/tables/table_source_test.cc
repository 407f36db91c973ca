#include "learn/tables/table_source.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "learn/data/kinds.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using test::data_spec;
using test::TemporaryDirectory;

const std::string kSchema = R"(dataset = "csv"
numeric = ["age", "weight"]
mean = [40, 70]
deviation = [10, 20]
missing_flags = true
missing = ["", "?", "-9"]
categorical = [{ column = "pain", values = ["1", "2", "none"] }]
target = "sick"
classes = ["no", "yes|very"]
split = { test = 0 }
)";

// The samples of a file with this text, or the error without the directory's name.
Result<Dataset> load_table(const std::string& text, const std::string& schema = kSchema) {
  const TemporaryDirectory directory;
  auto spec = data_spec(schema);
  if (!spec) return spec.error();
  spec->directory = test::write_text(directory.path() / "t.csv", text).string();
  const auto source = source_of(*spec);
  REQUIRE(source);
  auto data = (*source)->load(*spec, Split::kTrain);
  if (data) return data;
  Error error = data.error();
  if (const auto name = error.message.find("t.csv"); name != std::string::npos)
    error.message = error.message.substr(name);
  return error;
}

std::string table_error(const std::string& text, const std::string& schema = kSchema) {
  const auto data = load_table(text, schema);
  return data ? "no error" : data.error().message;
}

const std::string kHeader = "sick,weight,pain,age,name\n";

}  // namespace

TEST_CASE("table: features are numbers, flags and one-hot categories, in the schema's order") {
  const auto data = load_table(kHeader +
                               "no,90,2,50,ann\n"       // (50-40)/10, (90-70)/20, pain 2
                               "very,?,none,-9.0,bo\n"  // both numbers are missing
                               "yes, 70.5 ,,3e1,\"c,d\"\n"
                               "no,+.5,1.0,40,e\n");
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->shape == InputShape{1, 7, 1});
  CHECK(data->labels == std::vector<Label>{0, 1, 1, 0});
  CHECK(data->classes == 2);
  CHECK(data->class_names == std::vector<std::string>{"no", "yes|very"});
  const std::vector<float> expected = {
      1,  0, 1,       0, 0, 1, 0,  //
      0,  1, 0,       1, 0, 0, 1,  //
      -1, 0, 0.025F,  0, 0, 0, 0,  //
      0,  0, -3.475F, 0, 1, 0, 0,
  };
  CHECK(std::vector<float>(data->floats.data(), data->floats.data() + data->floats.size()) == expected);
}

TEST_CASE("table: without means, deviations and flags a number is itself and a missing one is 0") {
  const std::string schema =
      "dataset = \"csv\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\", \"1\"]\nsplit = { test = 0 "
      "}\n";
  const auto data = load_table("x,y\n1.25,0\n,1\n-7,1\n", schema);
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->shape == InputShape{1, 1, 1});
  CHECK(data->floats.span()[0] == 1.25F);
  CHECK(data->floats.span()[1] == 0.0F);
  CHECK(data->floats.span()[2] == -7.0F);
}

TEST_CASE("table: with a window, a sample is consecutive rows of one file and group") {
  const std::string schema =
      "dataset = \"csv\"\nnumeric = [\"x\", \"z\"]\ntarget = \"y\"\nclasses = [\"0\", \"1\"]\nsplit = { test "
      "= 0 "
      "}\nwindow = 3\nhop = 2\ngroup = \"g\"\n";
  // Group a has 6 rows: windows from rows 0 and 2; group b has 2 rows, and a again 3.
  const auto data = load_table(
      "g,x,z,y\na,0,10,1\na,1,11,0\na,2,12,0\na,3,13,1\na,4,14,1\na,5,15,0\nb,6,16,1\nb,7,17,1\na,8,18,1\na,"
      "9,19,"
      "0\na,10,20,1\n",
      schema);
  REQUIRE_MESSAGE(data, data.error().message);
  CHECK(data->shape == InputShape{3, 2, 1});
  CHECK(data->labels == std::vector<Label>{0, 1, 1});
  const std::vector<float> expected = {0, 10, 1, 11, 2, 12, 2, 12, 3, 13, 4, 14, 8, 18, 9, 19, 10, 20};
  CHECK(std::vector<float>(data->floats.data(), data->floats.data() + data->floats.size()) == expected);
  CHECK(table_error("g,x,z,y\na,0,1,1\na,0,1,1\n", schema).ends_with("there are no samples"));
  CHECK(table_error("x,z,y\n0,1,1\n", schema) ==
        "t.csv: there is no column \"g\"; the header has \"x\", \"z\", \"y\"");
  const auto useless =
      data_spec("dataset = \"csv\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\", \"1\"]\nhop = 2\n");
  REQUIRE_FALSE(useless);
  CHECK(useless.error().message.find("data.hop: has no effect without data.window") != std::string::npos);
}

TEST_CASE("table: a schema that would need too much memory is refused before it is allocated") {
  const std::string schema =
      "dataset = \"csv\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\", \"1\"]\nsplit = { test "
      "= 0 }\nwindow = 65536\nhop = 1\n";
  std::string rows = "x,y\n";
  for (int i = 0; i < 65'536 + 16'384; ++i) rows += "1,0\n";
  CHECK(table_error(rows, schema) ==
        "t.csv: the samples have more than 1073741824 features together, which is not supported");
}

TEST_CASE("table: an error names file, line and column, and what would be right") {
  const std::string good = "no,90,2,50,ann\n";
  CHECK(table_error("") == "t.csv: the file is empty; its first line must name the columns");
  CHECK(table_error(kHeader) == "t.csv: there are no samples");
  CHECK(table_error("sick,weight,pain\nno,1,2\n") ==
        "t.csv: there is no column \"age\"; the header has \"sick\", \"weight\", \"pain\"");
  CHECK(table_error("sick,age,weight,pain,age\n") == "t.csv: the header has the column \"age\" twice");
  CHECK(table_error(kHeader + good + "no,90,2,50\n") ==
        "t.csv:3: the row has 4 fields, but the header has 5");
  CHECK(table_error(kHeader + good + good + "no,heavy,2,50,ann\n") ==
        "t.csv:4: column \"weight\": \"heavy\" is not a finite number; data.missing lists what stands for a "
        "missing value: \"\", \"?\", \"-9\"");
  for (const char* number : {"nan", "inf", "-inf", "1e999", "1.5kg", "0x10", "1 2", "--1", "+-1"})
    CHECK(table_error(kHeader + "no," + number + ",2,50,ann\n").find("is not a finite number") !=
          std::string::npos);
  CHECK(table_error(kHeader + "no,1e300,2,50,ann\n") ==
        "t.csv:2: column \"weight\": \"1e300\" is too large for a 32-bit float");
  CHECK(table_error(kHeader + "no,90,4,50,ann\n") ==
        "t.csv:2: column \"pain\": \"4\" is not one of its values: \"1\", \"2\", \"none\"");
  CHECK(table_error(kHeader + "maybe,90,2,50,ann\n") ==
        "t.csv:2: column \"sick\": \"maybe\" is not one of data.classes: \"no\", \"yes|very\"");
  CHECK(table_error(kHeader + "?,90,2,50,ann\n") ==
        "t.csv:2: column \"sick\": \"?\" is not one of data.classes: \"no\", \"yes|very\"");
  const std::string secret(500, 's');
  CHECK(table_error(kHeader + "no," + secret + ",2,50,ann\n").size() < 200);
}

TEST_CASE("table: what the run file declares wrongly is refused when it is read") {
  const auto error = [](const std::string& keys) {
    const auto spec = data_spec(keys);
    return spec ? std::string("no error") : spec.error().message;
  };
  const std::string base = "dataset = \"csv\"\ntarget = \"y\"\nclasses = [\"0\", \"1\"]\n";
  CHECK(error("dataset = \"csv\"\nnumeric = [\"x\"]\nclasses = [\"0\", \"1\"]\n")
            .find("data.target is required") != std::string::npos);
  CHECK(error("dataset = \"csv\"\nnumeric = [\"x\"]\ntarget = \"y\"\n").find("data.classes is required") !=
        std::string::npos);
  CHECK(error(base).find("a table needs features") != std::string::npos);
  CHECK(error(base + "numeric = [\"x\", \"x\"]\n").find("data.numeric: contains \"x\" twice") !=
        std::string::npos);
  CHECK(error(base + "numeric = [\"x\", \"y\"]\n").find("data.target: the column \"y\" is also a feature") !=
        std::string::npos);
  CHECK(error(base + "numeric = [\"x\"]\nmean = [1, 2]\n")
            .find("data.mean: has 2 numbers, but data.numeric names 1 columns") != std::string::npos);
  CHECK(error(base + "numeric = [\"x\"]\ndeviation = [0]\n").find("data.deviation: 0 is out of range") !=
        std::string::npos);
  CHECK(error(base + "categorical = [{ column = \"c\", values = [] }]\n").find("is empty") !=
        std::string::npos);
  CHECK(error(base + "numeric = [\"c\"]\ncategorical = [{ column = \"c\", values = [\"1\"] }]\n")
            .find("the column \"c\" is already a feature") != std::string::npos);
  CHECK(error("dataset = \"csv\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0|1\", \"1\"]\n")
            .find("data.classes: contains \"1\" twice") != std::string::npos);
  CHECK(error("dataset = \"csv\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\"]\n")
            .find("has 1 classes, expected 2 to 65536") != std::string::npos);
  CHECK(error("numeric = [\"x\"]\n").find("data.numeric: has no effect with dataset = \"fashion-mnist\"") !=
        std::string::npos);
  CHECK(error("split = { test = 0.1 }\n").find("data.split: has no effect on a data set with test samples") !=
        std::string::npos);
  CHECK(error(base + "numeric = [\"x\"]\npartition = { kind = \"own\" }\n")
            .find("data.name: is required with data.partition.kind = \"own\"") != std::string::npos);
  CHECK(error(base + "numeric = [\"x\"]\nname = \"a/b\"\n").find("data.name: must have 1 to 64 letters") !=
        std::string::npos);
}

}  // namespace fedge::learn
