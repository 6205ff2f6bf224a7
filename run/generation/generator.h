// A trained language model that continues texts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/exec/engine.h"
#include "core/layers/model/model_input.h"
#include "run/generation/continued_text.h"
#include "run/generation/sampling.h"

namespace trainctl {

class World;
struct RankDevice;
struct RestoreSource;
struct RunSpec;

// The sizes of a generator.
struct GeneratorSizes {
  std::int64_t texts = 1;             // that are continued at the same time
  std::int64_t positions = 1;         // that the network sees at most: its trained number of positions
  std::int64_t vocabulary = 1;        // tokens from `vocabulary` on are never chosen
  std::vector<TokenId> without_text;  // further tokens that are never chosen
};

class Generator {
 public:
  // Builds the config's network for one new position of every text and for pieces of prompts, and loads its weights
  // from `stored`, which rank 0 has. Throws ConfigError, and Error{config} if the network does not map tokens to one
  // logit for each token, or if a logit may depend on later positions. Collective.
  Generator(const RunSpec& spec, const GeneratorSizes& sizes, RankDevice& device, const RestoreSource& stored,
            World& world);
  ~Generator();

  // Why the network computes all positions again for each token; empty if it keeps the keys and values of earlier
  // positions.
  const std::string& problem() const { return problem_; }
  // The number of different tokens that the network reads.
  std::int64_t known_tokens() const { return known_tokens_; }

  // Continues at most GeneratorSizes::texts texts until all have ended. `first` is the number of the first text, from
  // which the choices of tokens follow. Calls `added` after each round, in which every text that has not ended grew by
  // at most one token, and stops if it returns false. A text that is longer than the network's positions is continued
  // from its last tokens: whenever the positions are full, from the last half of them; without a cache, always from as
  // many tokens as there are positions. Not collective: ranks continue different texts.
  void run(std::vector<ContinuedText>& texts, std::int64_t first, const SamplingOptions& options,
           const std::function<bool()>& added);

 private:
  struct Steps;       // a program with its batch
  struct ReadTokens;  // a text's tokens in the network's memory

  void add_program(const RunSpec& spec, std::int64_t steps, std::vector<Program>& programs);
  void fit(const ContinuedText& text, ReadTokens& read) const;
  void step(Steps& steps, const std::vector<ContinuedText>& texts, std::vector<ReadTokens>& reads);
  std::span<const float> logits(const Steps& steps, std::size_t text, std::int64_t step);

  GeneratorSizes sizes_;
  std::size_t tokens_input_ = 0;
  std::int64_t known_tokens_ = 0;
  std::string problem_;
  std::vector<std::unique_ptr<Steps>> steps_;  // from the smallest number of steps to the largest
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::byte> logits_;  // of the last step
};

}  // namespace trainctl
