"""Define architectures of the package transformers, with random weights and two layers of width 32 or a
little more."""

import functools

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

# Each size has one name; a configuration maps it to its own name.
TEXT = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 64}
GPT = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
SEQUENCES = {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
             "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
             "decoder_ffn_dim": 64, "max_position_embeddings": 64, "pad_token_id": 0,
             "decoder_start_token_id": 2}
T5 = {"vocab_size": 100, "d_model": 32, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
      "d_ff": 64, "d_kv": 8}
PATCHES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
           "intermediate_size": 64, "image_size": 32, "patch_size": 8}
STAGES = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}
SPEECH = {"vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 64, "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2],
          "conv_kernel": [10, 3, 3], "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 8,
          "num_conv_pos_embedding_groups": 2}
WINDOWS = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2],
           "window_size": 4}


class Outputs(torch.nn.Module):
    """A model whose outputs are a tuple of tensors."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        values = self.model(**inputs).values()
        return tuple(value for value in values if isinstance(value, torch.Tensor))


def build(kind, configuration, inputs, auto=AutoModel):
    """Return the model of a kind (a model type of transformers) and its inputs by name."""
    model = auto.from_config(AutoConfig.for_model(kind, use_cache=False, **configuration))
    return Outputs(model), inputs()


def tokens(n=8):
    return torch.randint(3, 90, (1, n))


def image(size=32, channels=3):
    return torch.randn(1, channels, size, size)


def encoder(kind, **configuration):
    return functools.partial(build, kind, TEXT | configuration, lambda: {"input_ids": tokens()})


def decoder(kind, sizes=TEXT, **configuration):
    return functools.partial(build, kind, sizes | {"pad_token_id": 0} | configuration,
                             lambda: {"input_ids": tokens()}, AutoModelForCausalLM)


def both(kind, sizes=SEQUENCES, **configuration):
    """Return a builder of an encoder with a decoder."""
    return functools.partial(build, kind, sizes | configuration,
                             lambda: {"input_ids": tokens(), "decoder_input_ids": tokens(4)})


def vision(kind, sizes=PATCHES, size=32, **configuration):
    return functools.partial(build, kind, sizes | configuration,
                             lambda: {"pixel_values": image(size)})


def speech(kind, **configuration):
    return functools.partial(build, kind, SPEECH | configuration,
                             lambda: {"input_values": torch.randn(1, 800)})


def other(kind, inputs, **configuration):
    return functools.partial(build, kind, configuration, inputs)


ARCHITECTURES = {
    # text in, vectors out
    "bert": encoder("bert"),
    "albert": encoder("albert", embedding_size=16),
    "camembert": encoder("camembert"),
    "convbert": encoder("convbert"),
    "data2vec-text": encoder("data2vec-text"),
    "deberta-v2": encoder("deberta-v2", relative_attention=True, pos_att_type=["p2c", "c2p"],
                          position_buckets=16),
    "distilbert": functools.partial(
        build, "distilbert", {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4,
                              "hidden_dim": 64, "max_position_embeddings": 64},
        lambda: {"input_ids": tokens()}),
    "electra": encoder("electra", embedding_size=16),
    "ernie": encoder("ernie"),
    "esm": encoder("esm", mask_token_id=4, pad_token_id=1),
    "layoutlm": encoder("layoutlm"),
    "megatron-bert": encoder("megatron-bert"),
    "mobilebert": encoder("mobilebert", embedding_size=16, intra_bottleneck_size=16,
                          true_hidden_size=16),
    "modernbert": encoder("modernbert", pad_token_id=0, local_attention=8),
    "mpnet": encoder("mpnet"),
    "nystromformer": encoder("nystromformer"),
    "rembert": encoder("rembert", input_embedding_size=16, output_embedding_size=16),
    "roberta": encoder("roberta"),
    "roberta-prelayernorm": encoder("roberta-prelayernorm"),
    "roformer": encoder("roformer"),
    "squeezebert": encoder("squeezebert", embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
                           post_attention_groups=1, intermediate_groups=2, output_groups=2),
    "xlm": functools.partial(build, "xlm", {"n_words": 100, "emb_dim": 32, "n_layers": 2,
                                            "n_heads": 4}, lambda: {"input_ids": tokens()}),
    "xlm-roberta": encoder("xlm-roberta"),
    "xlnet": functools.partial(build, "xlnet", {"vocab_size": 100, "d_model": 32, "n_layer": 2,
                                                "n_head": 4, "d_inner": 64},
                               lambda: {"input_ids": tokens()}),
    "clip text": encoder("clip_text_model", projection_dim=16, eos_token_id=2, bos_token_id=1),
    # text in, the next token out
    "biogpt": decoder("biogpt"),
    "bloom": decoder("bloom", {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "codegen": decoder("codegen", GPT, rotary_dim=4),
    "cohere": decoder("cohere", num_key_value_heads=2),
    "falcon": decoder("falcon", multi_query=True),
    "gemma": decoder("gemma", num_key_value_heads=2, head_dim=8),
    "gemma2": decoder("gemma2", num_key_value_heads=2, head_dim=8),
    "gemma3": decoder("gemma3_text", num_key_value_heads=2, head_dim=8),
    "gpt2": decoder("gpt2", GPT),
    "gpt_neo": decoder("gpt_neo", {"vocab_size": 100, "hidden_size": 32, "num_layers": 2,
                                   "num_heads": 4, "max_position_embeddings": 64,
                                   "attention_types": [[["global", "local"], 1]],
                                   "window_size": 4}),
    "gpt_neox": decoder("gpt_neox"),
    "gptj": decoder("gptj", GPT, rotary_dim=4),
    "granite": decoder("granite", num_key_value_heads=2),
    "llama": decoder("llama", num_key_value_heads=2),
    "mamba": decoder("mamba", {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2,
                               "state_size": 4}),
    "mistral": decoder("mistral", num_key_value_heads=2),
    "mpt": decoder("mpt", {"vocab_size": 100, "d_model": 32, "n_layers": 2, "n_heads": 4,
                           "max_seq_len": 64, "expansion_ratio": 2}),
    "olmo2": decoder("olmo2", num_key_value_heads=2),
    "opt": decoder("opt", {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2,
                           "num_attention_heads": 4, "ffn_dim": 64, "word_embed_proj_dim": 32,
                           "max_position_embeddings": 64}),
    "persimmon": decoder("persimmon"),
    "phi": decoder("phi"),
    "phi3": decoder("phi3", num_key_value_heads=2),
    "qwen2": decoder("qwen2", num_key_value_heads=2),
    "qwen3": decoder("qwen3", num_key_value_heads=2, head_dim=8),
    "smollm3": decoder("smollm3", num_key_value_heads=2),
    "stablelm": decoder("stablelm", num_key_value_heads=2),
    "starcoder2": decoder("starcoder2", num_key_value_heads=2),
    "xglm": decoder("xglm", {"vocab_size": 100, "d_model": 32, "num_layers": 2,
                             "attention_heads": 4, "ffn_dim": 64, "max_position_embeddings": 64}),
    # text in, other text out
    "bart": both("bart"),
    "m2m_100": both("m2m_100"),
    "marian": both("marian"),
    "pegasus": both("pegasus"),
    "t5": both("t5", T5),
    # pictures
    "beit": vision("beit"),
    "clip vision": vision("clip_vision_model"),
    "convnext": vision("convnext", STAGES, 64),
    "dinov2": vision("dinov2"),
    "focalnet": vision("focalnet", {"image_size": 32, "patch_size": 2, "embed_dim": 16,
                                    "depths": [1, 1], "hidden_sizes": [16, 32],
                                    "focal_levels": [2, 2], "focal_windows": [3, 3]}),
    "levit": vision("levit", {"image_size": 64, "hidden_sizes": [16, 32, 48],
                              "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1],
                              "key_dim": [8, 8, 8]}, 64),
    "mobilenet_v2": vision("mobilenet_v2", {"depth_multiplier": 0.35, "image_size": 32}),
    "mobilevit": vision("mobilevit", {"image_size": 64, "hidden_sizes": [16, 20, 24],
                                      "neck_hidden_sizes": [8, 8, 16, 16, 20, 24, 32],
                                      "num_attention_heads": 2}, 64),
    "poolformer": vision("poolformer", STAGES),
    "pvt_v2": vision("pvt_v2", STAGES | {"image_size": 64, "num_attention_heads": [1, 2, 2, 4]}, 64),
    "regnet": vision("regnet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
                                "groups_width": 8}),
    "resnet": vision("resnet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
                                "layer_type": "basic"}),
    "segformer": vision("segformer", STAGES, 64),
    "siglip vision": vision("siglip_vision_model"),
    "swiftformer": vision("swiftformer", {"image_size": 64, "embed_dims": [8, 16, 16, 32],
                                          "depths": [1, 1, 1, 1]}, 64),
    "swin": vision("swin", WINDOWS),
    "vit": vision("vit"),
    # sound, and other series
    "audio spectrogram": other(
        "audio-spectrogram-transformer", lambda: {"input_values": torch.randn(1, 48, 32)},
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_length=48, num_mel_bins=32, patch_size=8, frequency_stride=8, time_stride=8),
    "data2vec-audio": speech("data2vec-audio", conv_pos_kernel_size=5, num_conv_pos_embeddings=2),
    "decision transformer": other(
        "decision_transformer",
        lambda: {"states": torch.randn(1, 5, 4), "actions": torch.randn(1, 5, 2),
                 "rewards": torch.randn(1, 5, 1), "returns_to_go": torch.randn(1, 5, 1),
                 "timesteps": torch.arange(5)[None], "attention_mask": torch.ones(1, 5)},
        state_dim=4, act_dim=2, hidden_size=32, n_layer=2, n_head=4, max_ep_len=64),
    "hubert": speech("hubert"),
    "patchtsmixer": other("patchtsmixer", lambda: {"past_values": torch.randn(1, 32, 3)},
                          num_input_channels=3, context_length=32, patch_length=8, patch_stride=8,
                          d_model=16, num_layers=2),
    "patchtst": other("patchtst", lambda: {"past_values": torch.randn(1, 32, 3)},
                      num_input_channels=3, context_length=32, patch_length=8, patch_stride=8,
                      d_model=16, ffn_dim=32, num_attention_heads=2, num_hidden_layers=2),
    "wav2vec2": speech("wav2vec2"),
    "wavlm": speech("wavlm"),
    "whisper": functools.partial(
        build, "whisper",
        {key: value for key, value in SEQUENCES.items() if key != "max_position_embeddings"}
        | {"num_mel_bins": 20, "max_source_positions": 30, "max_target_positions": 20},
        lambda: {"input_features": torch.randn(1, 20, 60), "decoder_input_ids": tokens(4)}),
}
