// The data set of a language model: tokens, and for each token the one that follows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/datasets/text/token_stream.h"

namespace trainctl {

// How a stream of tokens is cut into samples.
struct LanguageCut {
  std::int64_t positions = 0;  // tokens of a sample
  // Packed: sample i begins `stride` tokens after sample i - 1, whatever documents it holds; the last one ends with the
  // last token. Otherwise each document with at least two tokens is a sample, which is cut or padded.
  bool packing = true;
  std::int64_t stride = 0;  // 1 to positions
  // Packed: whether positions that an earlier sample has already judged have weight 0.
  bool counts_once = true;
  std::int64_t vocabulary = 0;  // all ids must be below
  std::int64_t embedding = 0;   // the rows of the network's embedding, which all ids must be below; 0: unknown
  std::int32_t padding = 0;     // the id after the end of a document
  std::function<std::shared_ptr<const std::vector<float>>()> token_bytes;  // like DatasetInfo::token_bytes
  std::optional<std::int32_t> end_token;  // ends documents, in a stream that does not tell where they end
};

// Makes the data set. Samples are tokens int32 [positions], targets are the classes of the positions [positions]: the
// next tokens. Weights [positions] are 0 for positions that do not count. With `numbers`, also makes a data set that
// has for each token of a sample the number of its document in the sample, 0, 1, 2, ..., as int32 [positions]. Throws
// Error{data} if there are fewer tokens than a sample needs, or if an id is not below the vocabulary or the rows of the
// embedding.
DatasetGroup language_dataset(TokenStream stream, const LanguageCut& cut, bool numbers);

}  // namespace trainctl
