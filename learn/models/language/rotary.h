// Rotary position embedding (Su et al., "RoFormer", 2021, section 3.2), in the order of Hugging Face's Llama:
// within a head of `size` floats, element i < size / 2 and element i + size / 2 are the two coordinates of a
// point, which is turned by position / theta^(2 i / size).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fedge::learn {

// How the angles are stretched for contexts longer than those of the pre-training.
//   none
//   linear   all angles are divided by `factor` (Chen et al., "Position Interpolation", 2023)
//   llama3   slow rotations are divided by `factor`, fast ones are kept, those between are blended
//   (Llama 3.1)
enum class RotaryScaling { kNone, kLinear, kLlama3 };

// The name in a run file.
const std::string& name_of(RotaryScaling scaling);

struct RotarySpec {
  double theta = 10'000;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1;
  double low = 1;          // llama3: rotations of at most this many turns in `original` tokens are slow
  double high = 4;         // llama3: those of at least this many are fast; above `low`
  double original = 8192;  // llama3: context of the pre-training
  bool operator==(const RotarySpec&) const = default;
};

// Cosines and sines of all angles, for positions 0, 1, ... Immutable.
class RotaryTable {
 public:
  RotaryTable() = default;
  // `size`: floats of a head; even.
  RotaryTable(const RotarySpec& spec, std::size_t positions, std::size_t size);

  // Turns the heads of some rows in place. Row r is at position first + r % length. `back` turns the other
  // way, which is the gradient's direction.
  struct Heads {
    float* data = nullptr;
    std::size_t rows = 0;
    std::size_t row = 0;    // floats from row to row
    std::size_t count = 0;  // heads, side by side
    std::size_t first = 0;
    std::size_t length = 0;
    bool back = false;
  };
  void turn(const Heads& heads) const;

 private:
  std::size_t half_ = 0;
  std::vector<float> cosines_;  // positions x half
  std::vector<float> sines_;
};

}  // namespace fedge::learn
