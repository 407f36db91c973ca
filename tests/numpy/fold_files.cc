// Folds update files into the accumulator, in the order given, and writes the mean as float64.
//   fold_files OUT PARAMETERS WEIGHT FILE [WEIGHT FILE]...
// mean_test.py runs it and compares the result with NumPy's.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/accumulator.h"

int main(int argc, char** argv) {
  using namespace fedge;
  if (argc < 5 || argc % 2 == 0) {
    std::cerr << "usage: fold_files OUT PARAMETERS WEIGHT FILE [WEIGHT FILE]...\n";
    return 2;
  }
  const std::size_t size = std::strtoull(argv[2], nullptr, 10);
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {size});
  aggregation::Accumulator accumulator(layout, {});
  const Coverage coverage = Coverage::all(size);
  std::vector<float> values(size);
  Sequential parallel;
  for (int i = 3; i < argc; i += 2) {
    std::ifstream file(argv[i + 1], std::ios::binary);
    const auto bytes = static_cast<std::streamsize>(size * sizeof(float));
    if (!file.read(reinterpret_cast<char*>(values.data()), bytes)) {
      std::cerr << "fold_files: cannot read " << bytes << " bytes of " << argv[i + 1] << "\n";
      return 1;
    }
    const aggregation::UpdateView update{SampleCount(std::strtoull(argv[i], nullptr, 10)), &coverage, values};
    if (const auto folded = accumulator.fold({&update, 1}, parallel); !folded) {
      std::cerr << "fold_files: " << folded.error().message << "\n";
      return 1;
    }
  }
  std::vector<double> mean(size);
  accumulator.mean(0, mean);
  std::ofstream out(argv[1], std::ios::binary);
  out.write(reinterpret_cast<const char*>(mean.data()), static_cast<std::streamsize>(size * sizeof(double)));
  return out.flush() ? 0 : 1;
}
