// The families of networks, one function and one file for each of them.
#pragma once

#include "io/hugging_face/network.h"

namespace trainctl {

HuggingFaceFamily bert_family();   // BERT and MiniLM
HuggingFaceFamily gpt2_family();   // GPT-2
HuggingFaceFamily llama_family();  // Llama, Mistral and Qwen 3
HuggingFaceFamily vit_family();    // vision transformers, and DeiT without the token of distillation

}  // namespace trainctl
