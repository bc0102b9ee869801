"""Node tests of the onnx package that cannot pass, and why."""

_BY_REASON: dict[str, str] = {
    "8-bit floating-point elements, which nothing is trained in": """
        test_cast_FLOAT16_to_FLOAT8E4M3FN test_cast_FLOAT16_to_FLOAT8E4M3FNUZ test_cast_FLOAT16_to_FLOAT8E5M2
        test_cast_FLOAT16_to_FLOAT8E5M2FNUZ test_cast_FLOAT8E4M3FNUZ_to_FLOAT test_cast_FLOAT8E4M3FNUZ_to_FLOAT16
        test_cast_FLOAT8E4M3FN_to_FLOAT test_cast_FLOAT8E4M3FN_to_FLOAT16 test_cast_FLOAT8E5M2FNUZ_to_FLOAT
        test_cast_FLOAT8E5M2FNUZ_to_FLOAT16 test_cast_FLOAT8E5M2_to_FLOAT test_cast_FLOAT8E5M2_to_FLOAT16
        test_cast_FLOAT_to_FLOAT8E4M3FN test_cast_FLOAT_to_FLOAT8E4M3FNUZ test_cast_FLOAT_to_FLOAT8E5M2
        test_cast_FLOAT_to_FLOAT8E5M2FNUZ test_cast_e8m0_FLOAT16_to_FLOAT8E8M0 test_cast_e8m0_FLOAT8E8M0_to_FLOAT
        test_cast_e8m0_FLOAT8E8M0_to_FLOAT16 test_cast_e8m0_FLOAT_to_FLOAT8E8M0
        test_cast_no_saturate_FLOAT16_to_FLOAT8E4M3FN test_cast_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ
        test_cast_no_saturate_FLOAT16_to_FLOAT8E5M2 test_cast_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ
        test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FN test_cast_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ
        test_cast_no_saturate_FLOAT_to_FLOAT8E5M2 test_cast_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ
        test_castlike_FLOAT16_to_FLOAT8E4M3FN test_castlike_FLOAT16_to_FLOAT8E4M3FNUZ
        test_castlike_FLOAT16_to_FLOAT8E4M3FNUZ_expanded test_castlike_FLOAT16_to_FLOAT8E4M3FN_expanded
        test_castlike_FLOAT16_to_FLOAT8E5M2 test_castlike_FLOAT16_to_FLOAT8E5M2FNUZ
        test_castlike_FLOAT16_to_FLOAT8E5M2FNUZ_expanded test_castlike_FLOAT16_to_FLOAT8E5M2_expanded
        test_castlike_FLOAT8E4M3FNUZ_to_FLOAT test_castlike_FLOAT8E4M3FNUZ_to_FLOAT16
        test_castlike_FLOAT8E4M3FNUZ_to_FLOAT16_expanded test_castlike_FLOAT8E4M3FNUZ_to_FLOAT_expanded
        test_castlike_FLOAT8E4M3FN_to_FLOAT test_castlike_FLOAT8E4M3FN_to_FLOAT16
        test_castlike_FLOAT8E4M3FN_to_FLOAT16_expanded test_castlike_FLOAT8E4M3FN_to_FLOAT_expanded
        test_castlike_FLOAT8E5M2FNUZ_to_FLOAT test_castlike_FLOAT8E5M2FNUZ_to_FLOAT16
        test_castlike_FLOAT8E5M2FNUZ_to_FLOAT16_expanded test_castlike_FLOAT8E5M2FNUZ_to_FLOAT_expanded
        test_castlike_FLOAT8E5M2_to_FLOAT test_castlike_FLOAT8E5M2_to_FLOAT16
        test_castlike_FLOAT8E5M2_to_FLOAT16_expanded test_castlike_FLOAT8E5M2_to_FLOAT_expanded
        test_castlike_FLOAT_to_FLOAT8E4M3FN test_castlike_FLOAT_to_FLOAT8E4M3FNUZ
        test_castlike_FLOAT_to_FLOAT8E4M3FNUZ_expanded test_castlike_FLOAT_to_FLOAT8E4M3FN_expanded
        test_castlike_FLOAT_to_FLOAT8E5M2 test_castlike_FLOAT_to_FLOAT8E5M2FNUZ
        test_castlike_FLOAT_to_FLOAT8E5M2FNUZ_expanded test_castlike_FLOAT_to_FLOAT8E5M2_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FN test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FN_expanded test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ_expanded
        test_castlike_no_saturate_FLOAT16_to_FLOAT8E5M2_expanded test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FN
        test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ_expanded
        test_castlike_no_saturate_FLOAT_to_FLOAT8E4M3FN_expanded test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2
        test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ_expanded
        test_castlike_no_saturate_FLOAT_to_FLOAT8E5M2_expanded
    """,
    "4-bit floating-point elements, which PyTorch lacks": """
        test_cast_FLOAT16_to_FLOAT4E2M1 test_cast_FLOAT4E2M1_to_FLOAT test_cast_FLOAT4E2M1_to_FLOAT16
        test_cast_FLOAT_to_FLOAT4E2M1 test_castlike_FLOAT16_to_FLOAT4E2M1 test_castlike_FLOAT16_to_FLOAT4E2M1_expanded
        test_castlike_FLOAT4E2M1_to_FLOAT test_castlike_FLOAT4E2M1_to_FLOAT16
        test_castlike_FLOAT4E2M1_to_FLOAT16_expanded test_castlike_FLOAT4E2M1_to_FLOAT_expanded
        test_castlike_FLOAT_to_FLOAT4E2M1 test_castlike_FLOAT_to_FLOAT4E2M1_expanded
    """,
    "integers of 2 and 4 bits, which PyTorch lacks": """
        test_cast_FLOAT16_to_INT2 test_cast_FLOAT16_to_INT4 test_cast_FLOAT16_to_UINT2 test_cast_FLOAT16_to_UINT4
        test_cast_FLOAT_to_INT2 test_cast_FLOAT_to_INT4 test_cast_FLOAT_to_UINT2 test_cast_FLOAT_to_UINT4
        test_cast_INT2_to_FLOAT test_cast_INT2_to_FLOAT16 test_cast_INT2_to_INT8 test_cast_INT4_to_FLOAT
        test_cast_INT4_to_FLOAT16 test_cast_INT4_to_INT8 test_cast_UINT2_to_FLOAT test_cast_UINT2_to_FLOAT16
        test_cast_UINT2_to_UINT8 test_cast_UINT4_to_FLOAT test_cast_UINT4_to_FLOAT16 test_cast_UINT4_to_UINT8
        test_castlike_FLOAT16_to_INT2 test_castlike_FLOAT16_to_INT2_expanded test_castlike_FLOAT16_to_INT4
        test_castlike_FLOAT16_to_INT4_expanded test_castlike_FLOAT16_to_UINT2 test_castlike_FLOAT16_to_UINT2_expanded
        test_castlike_FLOAT16_to_UINT4 test_castlike_FLOAT16_to_UINT4_expanded test_castlike_FLOAT_to_INT2
        test_castlike_FLOAT_to_INT2_expanded test_castlike_FLOAT_to_INT4 test_castlike_FLOAT_to_INT4_expanded
        test_castlike_FLOAT_to_UINT2 test_castlike_FLOAT_to_UINT2_expanded test_castlike_FLOAT_to_UINT4
        test_castlike_FLOAT_to_UINT4_expanded test_castlike_INT2_to_FLOAT test_castlike_INT2_to_FLOAT16
        test_castlike_INT2_to_FLOAT16_expanded test_castlike_INT2_to_FLOAT_expanded test_castlike_INT2_to_INT8
        test_castlike_INT2_to_INT8_expanded test_castlike_INT4_to_FLOAT test_castlike_INT4_to_FLOAT16
        test_castlike_INT4_to_FLOAT16_expanded test_castlike_INT4_to_FLOAT_expanded test_castlike_INT4_to_INT8
        test_castlike_INT4_to_INT8_expanded test_castlike_UINT2_to_FLOAT test_castlike_UINT2_to_FLOAT16
        test_castlike_UINT2_to_FLOAT16_expanded test_castlike_UINT2_to_FLOAT_expanded test_castlike_UINT2_to_UINT8
        test_castlike_UINT2_to_UINT8_expanded test_castlike_UINT4_to_FLOAT test_castlike_UINT4_to_FLOAT16
        test_castlike_UINT4_to_FLOAT16_expanded test_castlike_UINT4_to_FLOAT_expanded test_castlike_UINT4_to_UINT8
        test_castlike_UINT4_to_UINT8_expanded
    """,
    "strings, which PyTorch lacks": """
        test_equal_string test_equal_string_broadcast
    """,
    "an optional input, which a module that is trained has no use for": """
        test_identity_opt test_loop16_seq_none
    """,
    "Scan of opset 8, which runs over a batch; files from opset 9 on are read": """
        test_scan_sum
    """,
    "reads running statistics as outputs of an evaluation: what normalizes by the batch is the trainer, in its steps, "
    "whatever training_mode the file was exported with": """
        test_batchnorm_epsilon_training_mode test_batchnorm_example_training_mode
    """,
    "whether Dropout drops is the trainer's to say, and what is drawn by PyTorch's generator": """
        test_training_dropout test_training_dropout_default test_training_dropout_default_mask test_training_dropout_mask
    """,
    "drawn by PyTorch's generator, not numpy's": """
        test_bernoulli test_bernoulli_double test_bernoulli_double_expanded test_bernoulli_expanded test_bernoulli_seed
        test_bernoulli_seed_expanded
    """,
    "PyTorch's attention of half types computes in float32 and rounds once, the case after every step": """
        test_attention_3d_causal_bf16 test_attention_3d_causal_bf16_expanded test_attention_4d_attn_mask_causal_bf16
        test_attention_4d_attn_mask_causal_bf16_expanded test_attention_4d_causal_bf16
        test_attention_4d_causal_bf16_expanded test_attention_4d_causal_fp16 test_attention_4d_causal_fp16_expanded
        test_attention_4d_causal_padded_kv_bf16 test_attention_4d_causal_padded_kv_bf16_expanded test_attention_4d_fp16
        test_attention_4d_padded_kv_bf16 test_attention_4d_padded_kv_bf16_expanded
    """,
    "divides by the size before it is rounded down; the specification's text, onnxruntime and PyTorch have the resized "
    "tensor's": """
        test_resize_downsample_scales_cubic_align_corners test_resize_downsample_scales_linear_align_corners
    """,
    "expects the residue 1.9e-7 of its own transform where the result is 0": """
        test_dft_inverse test_dft_inverse_opset19
    """,
}

EXCLUDED: dict[str, str] = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
