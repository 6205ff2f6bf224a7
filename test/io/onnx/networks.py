"""Networks with every layer, in branches. Each branch reads the input and ends in a vector, and the output is the
concatenation of all branches, so that a wrong layer does not affect the others."""


def branches(source, **layers):
    """The layers of a network whose branches take the output of `source`."""
    network = []
    for name, branch in layers.items():
        for k, layer in enumerate(branch):
            kind, options = next(iter(layer.items())) if isinstance(layer, dict) else (layer, {})
            start = {"from": source} if k == 0 else {}
            network.append({kind: {"name": f"{name}_{k}", **start, **options}})
        network.append({"flatten": {"name": name}})
    return network + [{"concatenate": {"name": "all", "from": list(layers)}}]


FUNCTIONS = [{"activation": "leaky_relu", "negative_slope": 0.1}, {"activation": "elu", "alpha": 1.3},
             {"activation": "gelu", "approximate": True}]
FUNCTIONS += [{"activation": name} for name in (
    "linear", "relu", "relu6", "selu", "gelu", "silu", "mish", "hard_swish", "tanh", "sigmoid", "hard_sigmoid", "softplus",
    "softmax")]
RANDOM = {"gamma_initializer": {"name": "random_normal", "mean": 1, "stddev": 0.3},
          "beta_initializer": {"name": "random_normal", "stddev": 0.3}}
BIASED = {"bias_initializer": {"name": "random_normal", "stddev": 0.3}}


def conv(**options):
    return {"conv2d": {"filters": 6, "kernel_size": 3, **BIASED, **options}}


def functions(source):
    return {f"f{k}": [*source, {"activation": f}] for k, f in enumerate(FUNCTIONS)}


IMAGES = branches(
    "input",
    same=[conv(padding="same", activation="relu")],
    strided=[conv(kernel_size=[3, 2], strides=[2, 3], padding="same", activation="sigmoid")],
    grouped=[conv(groups=2, dilation_rate=2, padding=[1, 0], use_bias=False)],
    depthwise=[{"depthwise_conv2d": {"kernel_size": 3, "depth_multiplier": 2, "padding": "same", **BIASED}}],
    separable=[{"separable_conv2d": {"filters": 5, "kernel_size": 3, "strides": 2, "activation": "tanh", **BIASED}}],
    transposed=[{"conv2d_transpose": {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", **BIASED}}],
    transposed_valid=[{"conv2d_transpose": {"filters": 3, "kernel_size": [2, 3], "strides": [3, 2], "activation": "relu"}}],
    transposed_dilated=[{"conv2d_transpose": {"filters": 3, "kernel_size": 3, "dilation_rate": 2}}],
    transposed_gaps=[{"conv2d_transpose": {"filters": 2, "kernel_size": 1, "strides": 2, "padding": "same"}}],
    nearest=[{"upsampling2d": {"size": [2, 3]}}],
    bilinear=[{"upsampling2d": {"size": [3, 2], "interpolation": "bilinear"}}],
    max=[{"max_pooling2d": {"pool_size": 3, "strides": 2, "padding": "same"}}],
    max_valid=[{"max_pooling2d": {"pool_size": [2, 3]}}],
    average=[{"average_pooling2d": {"pool_size": 3, "strides": 2, "padding": "same"}}],
    average_padded=[{"average_pooling2d": {"pool_size": 3, "strides": 1, "padding": 1}}],
    global_max=[conv(), "global_max_pooling2d"],
    global_average=[conv(), "global_average_pooling2d"],
    global_of_input=["global_average_pooling2d"],
    cropped=[{"cropping2d": {"cropping": [[1, 2], [0, 3]]}}],
    cropped_behind=[conv(), {"cropping2d": {"cropping": [[1, 2], [0, 3]]}}],
    padded=[{"zero_padding2d": {"padding": [[1, 2], [0, 3]]}}],
    padded_behind=[conv(), {"zero_padding2d": {"padding": [[1, 2], [0, 3]]}}],
    batch_norm=[{"batch_normalization": {"momentum": 0.5, **RANDOM}}],
    batch_norm_alone=[conv(), {"batch_normalization": {"momentum": 0.5, "scale": False, "center": False}}],
    layer_norm=[conv(), {"layer_normalization": RANDOM}],
    layer_norm_alone=[{"layer_normalization": {"scale": False, "center": False}}],
    layer_norm_shifted=[{"layer_normalization": {"scale": False, "beta_initializer": RANDOM["beta_initializer"]}}],
    layer_scale=[conv(), {"layer_scale": {"init_values": 0.3}}],
    layer_scale_alone=[{"layer_scale": {"init_values": 0.3}}],
    rms_norm=[conv(), {"rms_normalization": {"scale_initializer": RANDOM["gamma_initializer"]}}],
    group_norm=[conv(), {"group_normalization": {"groups": 3, **RANDOM}}],
    group_norm_alone=[{"group_normalization": {"groups": 2, "scale": False, "center": False}}],
    prelu=[{"prelu": {"alpha_initializer": "random_normal"}}],
    prelu_behind=[conv(), {"prelu": {"alpha_initializer": "random_normal"}}],
    prelu_shared=[conv(), {"prelu": {"alpha_initializer": "random_normal", "shared_axes": [1, 2]}}],
    permuted=[conv(), {"permute": {"dims": [3, 1, 2]}}],
    reshaped=[conv(), {"reshape": {"target_shape": [-1, 3]}}, {"dense": {"units": 4, **BIASED}}],
    dense=[{"dense": {"units": 3, "activation": "relu", **BIASED}}],
    rescaled=[{"rescaling": {"scale": 0.5, "offset": -0.2}}],
    normalized=[conv(filters=4), {"normalization": {"mean": [0.1, 0.2, 0.3, 0.4], "variance": [1, 2, 3, 4]}}],
    dropped=[{"dropout": {"rate": 0.5}}],
    dropped_channels=[{"spatial_dropout": {"rate": 0.5}}],
    noise=[{"gaussian_noise": {"stddev": 0.5}}],
    noisy_factors=[{"gaussian_dropout": {"rate": 0.5}}, {"alpha_dropout": {"rate": 0.5}}],
    added=[{"add": {"from": ["prelu_0", "dropped_0"]}}],
    subtracted=[{"subtract": {"from": ["dropped_0", "noise_0"]}}, {"rescaling": {"scale": 2}}],
    multiplied=[{"multiply": {"from": ["prelu_0", "input"]}}],
    gated=[{"gated_linear_unit": {"from": ["prelu_0", "input"], "activation": "silu"}}],
    gated_behind=[conv(name="gate"), conv(name="up", **{"from": "input"}),
                  {"gated_linear_unit": {"from": ["gate", "up"], "activation": {"name": "gelu", "approximate": True}}}],
    averaged=[{"average": {"from": ["prelu_0", "input", "batch_norm_0"]}}],
    largest=[{"maximum": {"from": ["prelu_0", "batch_norm_0"]}}],
    smallest=[{"minimum": {"from": ["prelu_0", "batch_norm_0"]}}],
    joined=[{"concatenate": {"from": ["prelu_0", "input", "dense_0"]}}],
    squeezed=["global_average_pooling2d", {"reshape": {"target_shape": [1, 1, 4]}},
              {"dense": {"units": 4, "activation": "sigmoid"}}, {"multiply": {"from": ["prelu_0", "squeezed_2"]}}],
    squeezed_behind=[conv(), "global_average_pooling2d", {"reshape": {"target_shape": [1, 1, 6]}}, conv(kernel_size=1),
                     {"multiply": {"from": ["squeezed_behind_0", "squeezed_behind_3"]}}],
    chain=[conv(), {"batch_normalization": {"momentum": 0.5, **RANDOM}}, {"activation": {"activation": "softmax"}},
           {"group_normalization": {"groups": 2}}, conv(), {"layer_normalization": {}}, {"activation": {"activation": "hard_swish"}},
           {"concatenate": {"from": ["chain_6", "chain_4"]}}, conv(kernel_size=1)],
    block=[{"residual": {"layers": [conv(filters=4, padding="same"), {"batch_normalization": {"momentum": 0.5}}],
                         "activation": "relu"}}],
    block_around=[{"residual": {"layers": [conv(padding="same")], "shortcut": [conv(kernel_size=1)]}}],
    repeated=[{"repeat": {"times": 2, "layers": [conv(filters=4, padding="same", activation="tanh")]}}],
    used=[conv(name="twice", filters=4, padding="same"), {"activation": {"activation": "relu"}}, conv(name="twice", filters=4, padding="same")],
    **functions([]), **{"behind_" + name: branch for name, branch in functions([conv(filters=3)]).items()})



def conv_volumes(**options):
    return {"conv3d": {"filters": 4, "kernel_size": [2, 3, 3], **BIASED, **options}}


VOLUMES = branches(
    "input",
    same=[conv_volumes(padding="same", strides=[1, 2, 2], activation="relu")],
    grouped=[conv_volumes(groups=2, dilation_rate=[1, 2, 1], padding=[1, 0, 1], use_bias=False)],
    tubelets=[conv_volumes(kernel_size=[2, 3, 3], strides=[2, 3, 3], activation="tanh")],
    transposed=[{"conv3d_transpose": {"filters": 2, "kernel_size": 3, "strides": [1, 2, 2], "padding": "same", **BIASED}}],
    transposed_valid=[{"conv3d_transpose": {"filters": 2, "kernel_size": [2, 1, 3], "strides": [3, 2, 1]}}],
    nearest=[{"upsampling3d": {"size": [2, 1, 3]}}],
    max=[conv_volumes(), {"max_pooling3d": {"pool_size": [1, 3, 3], "strides": 2, "padding": "same"}}],
    max_valid=[{"max_pooling3d": {"pool_size": [2, 3, 2]}}],
    max_along_depth=[{"max_pooling3d": {"pool_size": [3, 1, 1], "strides": 1}}],
    average=[{"average_pooling3d": {"pool_size": 3, "strides": 2, "padding": "same"}}],
    global_max=[conv_volumes(), "global_max_pooling3d"],
    global_average=[conv_volumes(), "global_average_pooling3d"],
    cropped=[{"cropping3d": {"cropping": [[1, 0], [0, 3], [2, 1]]}}],
    padded=[conv_volumes(), {"zero_padding3d": {"padding": [[1, 0], [0, 3], [2, 1]]}}, conv_volumes()],
    chain=[conv_volumes(), {"batch_normalization": {"momentum": 0.5, **RANDOM}}, {"activation": {"activation": "relu"}},
           conv_volumes(),
           {"layer_normalization": {}}, {"spatial_dropout": {"rate": 0.5}}, conv_volumes(kernel_size=1)],
    block=[{"residual": {"layers": [conv_volumes(padding="same"), {"group_normalization": {"groups": 2}}],
                         "activation": "relu"}}])

SEQUENCES = [{"reversible_embedding": {"name": "vectors", "input_dim": 11, "output_dim": 6}}] + branches(
    "vectors@1",
    logits=[{"layer_normalization": RANDOM}, {"reversible_embedding": {"name": "vectors", "reverse": True}}],
    embedded=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 4}}],
    positions=[{"position_embedding": {"sequence_length": 7, "initializer": "random_normal"}}],
    positions_added=[{"position_embedding": {"sequence_length": 40, "initializer": "random_normal"}},
                     {"add": {"from": ["positions_added_0", "vectors@1"]}}],
    class_token=[{"class_token": {"initializer": "random_normal"}}],
    class_token_behind=[{"dense": {"units": 4}}, {"class_token": {"initializer": "random_normal"}},
                        {"position_embedding": {"sequence_length": 8}}],
    first_position=["take_position", {"layer_scale": {"init_values": 0.4}}],
    last_position=[{"class_token": {}}, {"take_position": {"index": -1}}],
    tokens_and_positions=[{"token_and_position_embedding": {"from": "input", "vocabulary_size": 11, "sequence_length": 40,
                                                            "embedding_dim": 4}}],
    rotary=[{"rotary_embedding": {}}],
    rotary_heads=[{"dense": {"units": 24}}, {"rotary_embedding": {"num_heads": 3, "rotary_dim": 6}}],
    rotary_neighbours=[{"dense": {"units": 24}}, {"rotary_embedding": {"num_heads": 3, "interleaved": True}}],
    rotary_llama=[{"dense": {"units": 24}}, {"rotary_embedding": {
        "num_heads": 2, "interleaved": True, "rotary_dim": 10, "scaling": "llama3", "scaling_factor": 4}}],
    einsum=[{"einsum_dense": {"equation": "abc,cde->abde", "output_shape": [7, 4, 2], "bias_axes": "de", **BIASED}},
            {"einsum_dense": {"equation": "abcd,cde->abe", "output_shape": [7, 3], "activation": "tanh"}}],
    attention=[{"multi_head_attention": {"num_heads": 2, "key_dim": 3, "value_dim": 4, "bias_initializer": "random_normal"}}],
    attention_window=[{"multi_head_attention": {"num_heads": 3, "key_dim": 2, "use_causal_mask": True, "sliding_window": 3}}],
    attention_grouped=[{"group_query_attention": {
        "num_query_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "use_causal_mask": True, "rotary_embedding": {},
        "query_key_norm": 1e-6}}],
    masked=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
            {"multi_head_attention": {"num_heads": 2, "key_dim": 3}}, "global_average_pooling1d"],
    masked_norm=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
                 {"batch_normalization": {"momentum": 0.5, **RANDOM}}, "global_average_pooling1d"],
    masked_lstm=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
                 {"lstm": {"units": 4, "return_sequences": True, **BIASED}},
                 {"gru": {"units": 3, "return_sequences": True, "go_backwards": True, "reverse_output": True, **BIASED}}],
    masked_last=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
                 {"gru": {"units": 4, "return_sequences": True, "go_backwards": True}}, {"simple_rnn": {"units": 3}}],
    masked_bare=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
                 {"bidirectional": {"layers": [{"lstm": {"units": 3, "use_bias": False}}]}}],
    masked_states=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
                   {"lstm": {"units": 4, "return_state": True, "return_sequences": True, **BIASED}},
                   {"lstm": {"units": 4, "initial_state": "masked_states_1", "return_state": True, "use_bias": False}},
                   {"gru": {"from": "masked_states_0", "units": 4, "initial_state": "masked_states_2/cell_state", **BIASED}}],
    both_ways=[{"bidirectional": {"layers": [{"lstm": {"units": 3, "return_sequences": True, **BIASED}}]}},
               {"bidirectional": {"name": "both_last", "layers": [{"gru": {"units": 4}}], "merge_mode": "ave"}},
               {"repeat_vector": {"n": 3}}],
    films=[{"reshape": {"target_shape": [3, 2, 7, 1]}},
           {"conv_lstm2d": {"filters": 2, "kernel_size": 2, "padding": "same", "return_sequences": True, **BIASED}},
           {"conv_lstm2d": {"filters": 2, "kernel_size": 2, "activation": "elu", "recurrent_activation": "hard_sigmoid"}}],
    film_states=[{"reshape": {"target_shape": [3, 2, 7, 1]}},
                 {"conv_lstm2d": {"filters": 2, "kernel_size": 2, "padding": "same", "return_state": True, **BIASED}},
                 {"conv_lstm2d": {"from": "film_states_0", "filters": 2, "kernel_size": 1, "initial_state": "film_states_1"}}],
    spectral=[{"spectral_normalization": {"layers": [{"dense": {"units": 4, **BIASED}}]}}],
    rows=[{"reshape": {"target_shape": [3, 7, 2]}}, {"conv_lstm1d": {"filters": 3, "kernel_size": 2, "go_backwards": True}}],
    scans=[{"reshape": {"target_shape": [3, 7, 2, 1, 1]}}, {"conv_lstm3d": {"filters": 2, "kernel_size": [2, 1, 1]}}],
    each_step=[{"reshape": {"target_shape": [7, 3, 2]}}, {"time_distributed": {"layers": [{"conv1d": {"filters": 4, "kernel_size": 2}}]}}],
    dot_attention=[{"attention": {"from": ["vectors@1", "vectors@1"], "use_scale": True}}],
    concat_attention=[{"attention": {"from": ["vectors@1", "vectors@1"], "use_scale": True, "score_mode": "concat"}}],
    additive_attention=[{"additive_attention": {"from": ["vectors@1", "vectors@1"], "use_causal_mask": True}}],
    additive_masked=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
                     {"dense": {"units": 6}}, {"additive_attention": {"from": ["additive_masked_1", "additive_masked_0"]}}],
    products=[{"dense": {"units": 4}}, {"dot": {"from": ["products_0", "vectors@1"], "axes": 1}}],
    cosines=[{"dense": {"units": 6}}, {"dot": {"from": ["cosines_0", "vectors@1"], "axes": [2, -1], "normalize": True}}],
    encoder=[{"transformer_encoder": {"intermediate_dim": 9, "num_heads": 2, **BIASED}}],
    decoder=[{"embedding": {"from": "input", "input_dim": 11, "output_dim": 6, "mask_zero": True}},
             {"transformer_decoder": {"from": ["vectors@1", "decoder_0"], "intermediate_dim": 9, "num_heads": 3,
                                      "activation": "gelu", "normalize_first": True, **BIASED}}],
    segments=[{"segment_embedding": {"embeddings_initializer": "random_normal"}}],
    masked_values=[{"masking": {"mask_value": 0.5}}, {"masking": {"name": "zero", "from": "masked_0"}},
                   {"add": {"from": ["masked_values_0", "zero"]}}, "global_average_pooling1d"],
    rms_normalized=[{"rms_normalization": {"scale_initializer": RANDOM["gamma_initializer"]}}],
    plain=[{"activation": {"activation": "linear"}}],
    same=[{"conv1d": {"filters": 4, "kernel_size": 3, "padding": "same", "activation": "relu", **BIASED}}],
    causal=[{"conv1d": {"filters": 4, "kernel_size": 3, "padding": "causal", "dilation_rate": 2, "groups": 2}}],
    strided=[{"conv1d": {"filters": 4, "kernel_size": 2, "strides": 2, **BIASED}}, {"batch_normalization": {"momentum": 0.5}}],
    transposed=[{"conv1d_transpose": {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same", **BIASED}}],
    transposed_valid=[{"conv1d_transpose": {"filters": 3, "kernel_size": 2, "dilation_rate": 3, "activation": "relu"}}],
    longer=[{"upsampling1d": {"size": 3}}],
    cropped=[{"cropping1d": {"cropping": [2, 1]}}],
    padded=[{"zero_padding1d": {"padding": [1, 3]}}],
    unit=["unit_normalization"],
    spectrum=[{"stft_spectrogram": {"frame_length": 4, "padding": "same"}}],
    phases=[{"stft_spectrogram": {"mode": "angle", "frame_length": 5, "expand_dims": True}}],
    limited=[{"relu": {"max_value": 0.5, "negative_slope": 0.3, "threshold": 0.2}}, {"leaky_relu": {}}],
    functions=[{"dense": {"units": 4}}, {"elu": {"alpha": 0.7}}, {"relu": {"max_value": 1}}, {"softmax": {"axis": 1}}, {"softmax": {}}],
    max=[{"max_pooling1d": {"pool_size": 3, "strides": 2, "padding": "same"}}],
    average=[{"average_pooling1d": {"pool_size": 2}}],
    global_max=["global_max_pooling1d"],
    global_average=["global_average_pooling1d"],
    lstm=[{"lstm": {"units": 5, **BIASED}}],
    lstm_sequences=[{"lstm": {"units": 5, "return_sequences": True}}, {"dense": {"units": 3}}],
    lstm_backwards=[{"lstm": {"units": 5, "go_backwards": True, "return_sequences": True, **BIASED}}],
    lstm_both_ways=[{"lstm": {"units": 5, "go_backwards": True, "reverse_output": True, "return_sequences": True}}],
    gru_reversed=[{"gru": {"units": 4, "reverse_output": True, "return_sequences": True, **BIASED}}],
    simple_rnn=[{"simple_rnn": {"units": 5, **BIASED}}],
    simple_rnn_sequences=[{"simple_rnn": {"name": "再帰", "units": 5, "return_sequences": True, "use_bias": False}},
                          {"dense": {"name": "sortie_é", "units": 3}}],
    lstm_unbiased=[{"lstm": {"units": 4, "go_backwards": True, "use_bias": False}}],
    states=[{"lstm": {"units": 4, "return_state": True, **BIASED}},
            {"lstm": {"from": "vectors@1", "units": 4, "initial_state": ["states_0/cell_state", "states_0"], "return_sequences": True}},
            {"gru": {"units": 4, "initial_state": "states_0/cell_state", "return_state": True, "return_sequences": True}},
            {"simple_rnn": {"units": 4, "initial_state": "states_2", "go_backwards": True}}],
    gru=[{"gru": {"units": 5, **BIASED}}],
    gru_sequences=[{"gru": {"units": 5, "return_sequences": True, "use_bias": False}}, {"gru": {"units": 3, **BIASED}}],
    gru_backwards=[{"gru": {"units": 5, "go_backwards": True, "return_sequences": True, **BIASED}}],
    normalized=[{"layer_normalization": RANDOM}, {"group_normalization": {"groups": 2, **RANDOM}}],
    permuted=[{"permute": {"dims": [2, 1]}}, {"prelu": {"alpha_initializer": "random_normal", "shared_axes": [1]}}],
    dense=[{"dense": {"units": 3, "activation": "gelu", **BIASED}}, {"spatial_dropout": {"rate": 0.5}}])

VECTORS = branches(
    "input",
    dense=[{"dense": {"units": 5, **BIASED}}, {"batch_normalization": {"momentum": 0.5, **RANDOM}},
           {"prelu": {"alpha_initializer": "random_normal"}}, {"dense": {"units": 4, "use_bias": False}}],
    grouped=[{"group_normalization": {"groups": 2, **RANDOM}}],
    layered=[{"layer_normalization": RANDOM}],
    normalized=[{"normalization": {"mean": [0.5], "variance": [2]}}],
    computed=[{"lambda": {"expression": "x * sigmoid(beta * x)", "weights": {"beta": {"shape": [1], "initializer": "ones"}}}}],
    multiplied=[{"lambda": {"expression": "einsum('bi,bj->bij', x, tanh(x)) @ x[:, :, None]"}}, {"lambda": {"expression": "x[..., 0]"}},
                {"lambda": {"expression": "einsum('kj,bj->bk', w, roll(x, 1, axis=1))", "weights": {"w": {"shape": [5, 6]}}}}],
    numbered=[{"lambda": {"expression": "flip(cumsum(x, axis=1), axis=1) * arange(6) + sum(one_hot(argmax(x, axis=-1), 6), axis=-1, keepdims=True) "
                                        "* take(x, [3, 0, 0, 5, 1, 2], axis=1)"}}],
    padded=[{"lambda": {"expression": "pad(x, ((0, 0), (2, 1)))[:, :6] + repeat(split(x, 2, axis=1)[1], 2, axis=1)"}}],
    shared=[{"prelu": {"alpha_initializer": "random_normal"}}, {"activation": {"activation": "softmax"}}],
    **functions([]))
